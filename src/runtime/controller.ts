import { keyOf, refOf } from '../api/key.ts';
import type { Clock } from '../api/clock.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { refTo } from '../api/objects/references.ts';
import { ResourceError } from '../store/resources.ts';
import { kindOf } from '../store/dependencies.ts';
import type { TrackedRead, Tracking } from '../store/tracking.ts';
import { endsWithin } from './clock.ts';
import type { LeaderWork } from './leader-election/leadership.ts';
import { observerOf, registerGauges } from './observer.ts';
import type { Result, Telemetry } from './observer.ts';
import { Queue } from './queue/queue.ts';
import type { Outcome } from './queue/queue.ts';
import { Resync } from './resync.ts';
import { Runs } from './runs.ts';
import type { RunContext } from './runs.ts';
import { ObjectReads } from './object-reads.ts';
import { WantedKeys } from './wanted-keys.ts';

/** Reconciles the objects of one kind. */
export type Controller<K extends ResourceKind = ResourceKind, M = undefined> = {
  /** Its name in logs and metrics. */
  readonly name: string;
  readonly kind: K;
  /** The kinds that its reconciles read themselves: they can read no others. Values that they read were derived from others, too. */
  readonly reads: readonly ResourceKind[];
  /** Objects that it reconciles although they may not exist, beside all that do. */
  readonly keys?: (read: TrackedRead) => readonly Ref<K>[];
  /** Enqueues objects for reasons that are not in the resources; returns the function that ends it. */
  readonly subscribe?: (enqueue: (ref: Ref<K>) => void) => (() => void) | undefined;
  /** The time between the end of a reconcile that succeeded and the next one of the same object, at least. */
  readonly minIntervalMs?: number;
  /** Creates what it remembers of an object between reconciles, which is forgotten with the object. */
  readonly memory?: () => M;
  /**
   * Reconciles one object in its current state, which may be that it does not exist. It runs again when the object changes,
   * or anything else that it has read through `read`. It is not given what changed, and never runs twice at once for one
   * object.
   */
  readonly reconcile: (ref: Ref<K>, read: TrackedRead, context: RunContext<M>) => Promise<Outcome>;
};

export type ControllerDeps = {
  readonly tracking: Tracking;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** Before it ends, nothing is reconciled; by default as soon as the source is synced. */
  readonly prepared?: Promise<void>;
};

export type ControllerOptions = {
  /** How many objects are reconciled at once, at most. */
  readonly concurrency: number;
  /** How often each object is reconciled when nothing changes. */
  readonly syncPeriodMs: number;
  /** The kinds that the process watches: what reconciles read may be derived from no others. By default all. */
  readonly watched?: readonly ResourceKind[] | undefined;
};

/** How long runs in progress may go on, and how long again once they are aborted. */
export type DrainOptions = { readonly graceMs: number; readonly abortMs: number };

/** A started controller. */
export interface RunningController {
  readonly name: string;
  /** Starts no more runs; those in progress go on. */
  stop(): void;
  /** Stops, waits for the runs in progress, then aborts them; returns the keys of those that still did not end. */
  drain(options: DrainOptions): Promise<readonly Key[]>;
}

/** Runs a controller: for every object once the source is synced, and from then on for each that a change concerns. */
export function startController<K extends ResourceKind, M = undefined>(
  { name, kind, reads, keys, reconcile, subscribe, minIntervalMs = 0, memory }: Controller<K, M>,
  { tracking, clock, telemetry, prepared }: ControllerDeps,
  { concurrency, syncPeriodMs, watched }: ControllerOptions,
): RunningController {
  const read = tracking.untracked;
  const observer = observerOf(name, telemetry);
  const runs = new Runs<Key, M>({ clock, observer, release: key => queue.release(key) });
  const resync = new Resync<Key>({ clock, periodMs: syncPeriodMs, enqueue: enqueueForResync });
  const queue = new Queue<Key>({ clock, work, concurrency, observer, namespaceOf });
  const memories = new Map<Key, M>();
  const objects = new ObjectReads({
    tracking,
    clock,
    name,
    kinds: { itself: new Set([kind, ...reads]), derived: watched && new Set(watched) },
    minIntervalMs,
    enqueue: (key, cause) => queue.add(key, cause),
    isWanted: key => wanted?.has(key) === true,
  });
  const wanted =
    keys && new WantedKeys(keys, { tracking, clock, enqueue: (key, cause) => objects.enqueue(key, cause) });

  async function work(key: Key): Promise<Outcome> {
    resync.keep(key);
    const rest = objects.restOf(key);
    if (rest) return rest;
    if (memory && !memories.has(key)) memories.set(key, memory());
    const run = runs.begin(key, memories.get(key) as M);
    const reading = objects.begin(key);
    const { result, outcome, error } = await attempt(() => reconcile(refOf(key) as Ref<K>, reading, run));
    if (objects.end(key, reading, { outcome, written: run.written })) memories.delete(key);
    const ms = runs.end(run);
    if (!run.isAbandoned) observer.ran(result, ms);
    if (result === 'error') observer.failed(key, error);
    return outcome;
  }

  function enqueueForResync(key: Key): boolean {
    const exists = read.get(refOf(key)) !== undefined;
    if (exists) objects.enqueue(key, 'resync');
    return exists;
  }

  const unfollow = [
    read.subscribe(change => {
      if (kindOf(change.key) === kind) objects.enqueueChanged(change);
    }),
    subscribe?.(ref => objects.enqueue(keyOf(ref), 'change')),
    () => wanted?.stop(),
  ];
  for (const object of read.list(kind)) objects.enqueue(keyOf(refTo(object)), 'first');
  const unregister = registerGauges(
    name,
    concurrency,
    { queue: () => queue.state(), runs: () => runs.list() },
    telemetry,
  );
  void (prepared ?? read.whenSynced()).then(() => {
    wanted?.start();
    queue.start();
    resync.start();
  });

  const stop = () => {
    for (const end of unfollow) end?.();
    resync.stop();
    queue.stop();
    objects.stop();
  };
  const drain = async (options: DrainOptions) => {
    stop();
    await drainRuns(options, { clock, queue, runs });
    runs.close();
    unregister();
    return runs.list().map(({ key }) => key);
  };
  return { name, stop, drain };
}

function namespaceOf(key: Key): string {
  return refOf(key).namespace;
}

type InProgress = {
  readonly clock: Clock;
  readonly queue: Queue<Key>;
  readonly runs: Pick<Runs<Key>, 'abortAll'>;
};

async function drainRuns(
  { graceMs, abortMs }: DrainOptions,
  { clock, queue, runs }: InProgress,
): Promise<void> {
  if (await endsWithin(clock, graceMs, queue.whenIdle())) return;
  runs.abortAll(new Error('the process is shutting down'));
  await endsWithin(clock, abortMs, queue.whenIdle());
}

/** Controllers as a leader's work: their runs get the grace period where the process stops, and none where leadership is lost. */
export function leadControllers(
  controllers: readonly RunningController[],
  options: DrainOptions,
): LeaderWork {
  return {
    end: async because => {
      const drain = because === 'lost' ? { ...options, graceMs: 0 } : options;
      const left = (await Promise.all(controllers.map(controller => controller.drain(drain)))).flat();
      if (left.length > 0) throw new Error(`reconciles did not end: ${left.slice(0, 10).join(', ')}`);
    },
  };
}

/** How a run ended. */
type Ending = { readonly result: Result; readonly outcome: Outcome; readonly error?: unknown };

const RESULTS = {
  'on-change': 'success',
  after: 'requeue_after',
  'with-backoff': 'requeue',
  'once-available': 'requeue',
} as const;

/**
 * Runs a reconcile; never fails. This is the one place that decides what an error means:
 *
 *   error          retry                                           counts as
 *   Unavailable    with backoff, once what is away can be back     error
 *   Gone           with backoff                                    no error: it happens in normal operation
 *   any other      with backoff                                    error
 */
async function attempt(run: () => Promise<Outcome>): Promise<Ending> {
  try {
    const outcome = checkedOutcome(await run());
    return { result: RESULTS[outcome.requeue], outcome };
  } catch (error) {
    const reason = error instanceof ResourceError ? error.reason : undefined;
    const outcome = { requeue: reason === 'Unavailable' ? 'once-available' : 'with-backoff' } as const;
    return reason === 'Gone' ? { result: 'requeue', outcome } : { result: 'error', outcome, error };
  }
}

/** Checks at run time what a reconcile returned; throws where it is no outcome. */
function checkedOutcome(given: unknown): Outcome {
  const { requeue, ms } = Object(given) as { readonly requeue?: unknown; readonly ms?: unknown };
  if (requeue === 'on-change' || requeue === 'with-backoff' || requeue === 'once-available')
    return { requeue };
  if (requeue === 'after' && typeof ms === 'number' && Number.isFinite(ms))
    return { requeue, ms: Math.max(0, ms) };
  throw new TypeError('reconcile did not return an outcome');
}
