import { refOf } from '../api/key.ts';
import type { Clock } from '../api/clock.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { ResourceError } from '../resources/resources.ts';
import type { ReadResources } from '../resources/resources.ts';
import { endsWithin } from './clock.ts';
import type { Leading } from './leader-election/leadership.ts';
import { observerOf, show } from './observer.ts';
import type { Result, Telemetry } from './observer.ts';
import { Queue } from './queue/queue.ts';
import type { Outcome } from './queue/queue.ts';
import { Resync } from './resync.ts';
import { Runs } from './runs.ts';
import type { RunContext } from './runs.ts';
import { routeChanges } from './trigger.ts';
import type { Trigger } from './trigger.ts';

/** Makes the world be as the objects of one kind say. */
export type Controller<K extends ResourceKind = ResourceKind> = {
  /** As it stands in logs and metrics. */
  readonly name: string;
  readonly kind: K;
  readonly triggers: readonly Trigger<K>[];
  /**
   * Reconciles one object as it is now, which may no longer exist. It is not given what has changed, and never runs twice
   * at once for one object.
   */
  readonly reconcile: (ref: Ref<K>, context: RunContext) => Promise<Outcome>;
};

export type ControllerDeps = {
  readonly read: ReadResources;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
};

export type ControllerSettings = {
  /** How many objects are reconciled at once, at most. */
  readonly concurrency: number;
  /** How often each object is reconciled when nothing changes. */
  readonly syncPeriodMs: number;
};

/** How long runs have to end by themselves, and then to obey their signal. */
export type DrainLimits = { readonly endMs: number; readonly obeyMs: number };

/** A controller at work. */
export interface RunningController {
  readonly name: string;
  /** Begins no more runs; those in progress go on. */
  stop(): void;
  /** Stops, waits for the runs in progress, then aborts them; returns the keys of those that did not end even so. */
  drain(limits: DrainLimits): Promise<readonly Key[]>;
}

/** Runs a controller: for every object once all has been read, and from then on for each that a change concerns. */
export function startController<K extends ResourceKind>(
  { name, reconcile, ...what }: Controller<K>,
  { read, clock, telemetry }: ControllerDeps,
  { concurrency, syncPeriodMs }: ControllerSettings,
): RunningController {
  const observer = observerOf(name, telemetry);
  const runs = new Runs<Key>({ clock, observer, release: key => queue.release(key) });
  const resync = new Resync<Key>({ clock, periodMs: syncPeriodMs, offer });
  const queue = new Queue<Key>({ clock, work, concurrency, observer });

  async function work(key: Key): Promise<Outcome> {
    resync.keep(key);
    const run = runs.begin(key);
    const { result, outcome, error } = await attempt(() => reconcile(refOf(key) as Ref<K>, run));
    const ms = runs.end(run);
    if (!run.isGivenUp) observer.ran(result, ms);
    if (result === 'error') observer.failed(key, error);
    return outcome;
  }

  function offer(key: Key): boolean {
    const isThere = read.get(refOf(key)) !== undefined;
    if (isThere) queue.add(key, 'resync');
    return isThere;
  }

  const endRoutes = routeChanges(what, read, {
    add: (key, cause) => queue.add(key, cause),
    missed: (key, error) => observer.missed(key, error),
  });
  const hide = show(name, concurrency, { queue: () => queue.state(), runs: () => runs.list() }, telemetry);
  void read.whenSynced().then(() => {
    queue.start();
    resync.start();
  });

  const stop = () => {
    endRoutes();
    resync.stop();
    queue.stop();
  };
  const drain = async (limits: DrainLimits) => {
    stop();
    await letEnd(limits, { clock, queue, runs });
    runs.close();
    hide();
    return runs.list().map(({ key }) => key);
  };
  return { name, stop, drain };
}

type UnderWay = { readonly clock: Clock; readonly queue: Queue<Key>; readonly runs: Runs<Key> };

async function letEnd({ endMs, obeyMs }: DrainLimits, { clock, queue, runs }: UnderWay): Promise<void> {
  if (await endsWithin(clock, endMs, queue.whenIdle())) return;
  runs.abortAll(new Error('the process is ending'));
  await endsWithin(clock, obeyMs, queue.whenIdle());
}

/** Controllers as a leader's work: their runs have time to end where the process stops, and none where leadership is lost. */
export function leadControllers(controllers: readonly RunningController[], limits: DrainLimits): Leading {
  return {
    end: async because => {
      const allowed = because === 'lost' ? { ...limits, endMs: 0 } : limits;
      const left = (await Promise.all(controllers.map(controller => controller.drain(allowed)))).flat();
      if (left.length > 0) throw new Error(`reconciles did not end: ${left.slice(0, 10).join(', ')}`);
    },
  };
}

/** How a run ended. */
type Ending = { readonly result: Result; readonly outcome: Outcome; readonly error?: unknown };

const RESULTS = { 'on-change': 'success', after: 'requeue_after', 'with-backoff': 'requeue' } as const;

/**
 * Carries out a run; never fails. This is the one place that decides what an error means: all are retried with backoff.
 * An object that was deleted before it could be written is no error, since deletions and runs meet all the time.
 */
async function attempt(run: () => Promise<Outcome>): Promise<Ending> {
  try {
    const outcome = checkedOutcome(await run());
    return { result: RESULTS[outcome.look], outcome };
  } catch (error) {
    const outcome = { look: 'with-backoff' } as const;
    const isGone = error instanceof ResourceError && error.reason === 'Gone';
    return isGone ? { result: 'requeue', outcome } : { result: 'error', outcome, error };
  }
}

/** The outcome that a run returned, which the compiler cannot promise; fails where it is none. */
function checkedOutcome(given: unknown): Outcome {
  const { look, ms } = Object(given) as { readonly look?: unknown; readonly ms?: unknown };
  if (look === 'on-change' || look === 'with-backoff') return { look };
  if (look === 'after' && typeof ms === 'number' && Number.isFinite(ms)) return { look, ms: Math.max(0, ms) };
  throw new TypeError('the run did not return when to run again');
}
