import { keyOf, refOf } from '../api/key.ts';
import type { Clock } from '../api/clock.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { ResourceError } from '../store/resources.ts';
import type { ReadResources } from '../store/resources.ts';
import { endsWithin } from './clock.ts';
import type { LeaderWork } from './leader-election/leadership.ts';
import { observerOf, registerGauges } from './observer.ts';
import type { Result, Telemetry } from './observer.ts';
import { Queue } from './queue/queue.ts';
import type { Outcome } from './queue/queue.ts';
import { Resync } from './resync.ts';
import { Runs } from './runs.ts';
import type { RunContext } from './runs.ts';
import { watchChanges } from './trigger.ts';
import type { Trigger } from './trigger.ts';

/** Reconciles the objects of one kind. */
export type Controller<K extends ResourceKind = ResourceKind> = {
  /** Its name in logs and metrics. */
  readonly name: string;
  readonly kind: K;
  readonly triggers: readonly Trigger<K>[];
  /** Enqueues objects for reasons that are not in the resources; returns the function that ends it. */
  readonly subscribe?: (enqueue: (ref: Ref<K>) => void) => (() => void) | undefined;
  /**
   * Reconciles one object in its current state, which may be that it no longer exists. It is not given what changed, and
   * never runs twice at once for one object.
   */
  readonly reconcile: (ref: Ref<K>, context: RunContext) => Promise<Outcome>;
};

export type ControllerDeps = {
  readonly read: ReadResources;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
};

export type ControllerOptions = {
  /** How many objects are reconciled at once, at most. */
  readonly concurrency: number;
  /** How often each object is reconciled when nothing changes. */
  readonly syncPeriodMs: number;
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
export function startController<K extends ResourceKind>(
  { name, reconcile, subscribe, ...watched }: Controller<K>,
  { read, clock, telemetry }: ControllerDeps,
  { concurrency, syncPeriodMs }: ControllerOptions,
): RunningController {
  const observer = observerOf(name, telemetry);
  const runs = new Runs<Key>({ clock, observer, release: key => queue.release(key) });
  const resync = new Resync<Key>({ clock, periodMs: syncPeriodMs, enqueue: enqueueForResync });
  const queue = new Queue<Key>({ clock, work, concurrency, observer });

  async function work(key: Key): Promise<Outcome> {
    resync.keep(key);
    const run = runs.begin(key);
    const { result, outcome, error } = await attempt(() => reconcile(refOf(key) as Ref<K>, run));
    const ms = runs.end(run);
    if (!run.isAbandoned) observer.ran(result, ms);
    if (result === 'error') observer.failed(key, error);
    return outcome;
  }

  function enqueueForResync(key: Key): boolean {
    const exists = read.get(refOf(key)) !== undefined;
    if (exists) queue.add(key, 'resync');
    return exists;
  }

  const unwatch = watchChanges(watched, read, {
    enqueue: (key, cause) => queue.add(key, cause),
    triggerFailed: (key, error) => observer.triggerFailed(key, error),
  });
  const unsubscribe = subscribe?.(ref => queue.add(keyOf(ref), 'change'));
  const unregister = registerGauges(
    name,
    concurrency,
    { queue: () => queue.state(), runs: () => runs.list() },
    telemetry,
  );
  void read.whenSynced().then(() => {
    queue.start();
    resync.start();
  });

  const stop = () => {
    unwatch();
    unsubscribe?.();
    resync.stop();
    queue.stop();
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

type InProgress = { readonly clock: Clock; readonly queue: Queue<Key>; readonly runs: Runs<Key> };

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
