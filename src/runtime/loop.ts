import { refOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { attempt } from './attempt.ts';
import { endsWithin } from './clock.ts';
import type { Clock } from '../api/clock.ts';
import type {
  Controller,
  ControllerPorts,
  ControllerSettings,
  DrainLimits,
  RunningController,
} from './controller.ts';
import { observerOf, show } from './observer.ts';
import type { Outcome } from './outcome.ts';
import type { Leading } from './leader-election/leadership.ts';
import { Queue } from './queue.ts';
import { Resync } from './resync.ts';
import { routeChanges } from './routing.ts';
import { PATIENCE, Runs } from './runs.ts';

/** Runs a controller: for every object once all has been read, and from then on for each that a change concerns. */
export function startController<K extends ResourceKind>(
  { name, reconcile, ...what }: Controller<K>,
  { resources, clock, telemetry }: ControllerPorts,
  { concurrency, syncPeriodMs, patience = PATIENCE }: ControllerSettings,
): RunningController {
  const observer = observerOf(name, telemetry);
  const runs = new Runs<Key>({ clock, patience, observer, release: key => queue.release(key) });
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
    const isThere = resources.get(refOf(key)) !== undefined;
    if (isThere) queue.add(key, 'resync');
    return isThere;
  }

  const endRoutes = routeChanges(what, resources, {
    add: (key, cause) => queue.add(key, cause),
    missed: (key, error) => observer.missed(key, error),
  });
  const hide = show(name, concurrency, { queue: () => queue.state(), runs: () => runs.list() }, telemetry);
  void resources.whenSynced().then(() => {
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
