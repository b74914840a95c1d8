import type { Kinds } from '../../api/generated/types.ts';
import { formatProblem } from '../../api/problem.ts';
import type { Fields } from '../../api/json.ts';
import { ControlError } from '../../control/control.ts';
import type { ControlApi, Device, VipService } from '../../control/control.ts';
import { isBeingDeleted } from '../../store/lifecycle.ts';
import type { WriteResources } from '../../store/resources.ts';
import { connectionOf } from './connection.ts';
import type { ConnectionDeps } from './connection.ts';
import type { VipServicesDeps } from './controller.ts';
import { FINALIZER } from './finalizer.ts';
import { isStale, STALE_MS, withOnly } from './decision.ts';
import { ownershipOf, withOwners } from './owners.ts';
import { OF_ALL, onlineIn } from './perform.ts';

/** What sweeps work with. */
export type SweeperDeps = ConnectionDeps &
  Pick<VipServicesDeps, 'now' | 'record'> & { readonly write: Pick<WriteResources, 'addFinalizer'> };

type Options = {
  /** For whom, as in `default/edge`. */
  readonly object: string;
  /** Undefined for the default. */
  readonly staleMs: number | undefined;
  /** The services that earlier parts of the cleanup have tried: each is tried once. */
  readonly tried: ReadonlySet<string>;
  readonly signal: AbortSignal;
};

/** Services that are written at once, so that others come in between. */
const MAX_WRITES = 20;

/**
 * Removes stale owners from the services of a tailnet, also from those that this installation does not list. A service that no
 * other owner has is taken over as one that this installation removes.
 */
export function sweeper(deps: SweeperDeps) {
  return async (tailnet: Kinds['MeshTailnet'], { object, staleMs = STALE_MS, tried, signal }: Options) => {
    const { name } = tailnet.metadata;
    // It takes no finalizer, by which what is taken over would be removed.
    if (isBeingDeleted(tailnet)) return { ...NOTHING_DONE, isComplete: true, problem: 'it is being deleted' };
    const connection = await connectionOf(tailnet, deps, undefined);
    if (connection.is === 'unusable') return stopped(NOTHING_DONE, formatProblem(connection.problem));
    if (connection.is === 'without-services') return { ...NOTHING_DONE, isComplete: true };
    const { devices, isStale: areOld = true } = deps.tailnets.lastView(name) ?? {};
    if (!devices || areOld) return stopped(NOTHING_DONE, 'its devices are not known');
    const { api, installation, services } = connection;
    const online = new Set(onlineIn(devices, tailnet.spec.tags));
    const isOnline = (other: string) => online.has(other);
    const context = { installation, now: deps.now(), staleMs, object, isOnline };
    const due = services.filter(service => !tried.has(service.name) && sweep(service, context));
    const done: Done[] = [];
    const failed: Failed[] = [];
    const soFar = () => ({
      ...sumOf(done),
      failed,
      tried: [...done, ...failed].map(({ service }) => service),
    });
    for (const service of due.slice(0, MAX_WRITES)) {
      signal.throwIfAborted();
      const planned = sweep(service, context);
      // Before the entry that it is to be removed by.
      if (planned?.isTakenOver) await deps.write.addFinalizer(tailnet, FINALIZER);
      try {
        const swept = await sweepOne(service.name, context, { api, devices });
        done.push(swept ?? { service: service.name, removed: 0, isTakenOver: false });
        if (swept) deps.record.registrations({ tailnet: name, result: 'released' });
      } catch (error) {
        if (!(error instanceof ControlError)) throw error;
        deps.record.registrations({ tailnet: name, result: 'failed' });
        if (OF_ALL.has(error.reason)) return stopped(soFar(), error.message);
        failed.push({ service: service.name, error });
      }
    }
    return { ...soFar(), isComplete: due.length <= MAX_WRITES };
  };
}

type Failed = { readonly service: string; readonly error: ControlError };

const NOTHING_DONE = { registrations: 0, services: [], failed: [], tried: [] } as const;

/** What was done until nothing more could be done for now. */
function stopped<T extends object>(soFar: T, problem: string) {
  return { ...soFar, isComplete: false, problem };
}

function sumOf(done: readonly Done[]) {
  return {
    registrations: done.reduce((sum, { removed }) => sum + removed, 0),
    services: done.flatMap(({ isTakenOver, service }) => (isTakenOver ? [service] : [])),
  };
}

type Context = {
  /** The id of this installation. */
  readonly installation: string;
  readonly now: Date;
  readonly staleMs: number;
  readonly object: string;
  readonly isOnline: (installation: string) => boolean;
};

type Planned = { readonly fields: Fields; readonly removed: number; readonly isTakenOver: boolean };
type Done = Pick<Planned, 'removed' | 'isTakenOver'> & { readonly service: string };

/*
 *   of someone else, or this installation has an entry    nothing: the controller decides about its own
 *   no owner is stale                                     nothing
 *   others own it too, or it was adopted                  remove the stale owners
 *   all owners are stale, or it has none                  take it over, unless a device that is online serves it
 */
function sweep(service: VipService, context: Context): Planned | undefined {
  const ownership = ownershipOf(service);
  if (ownership.is === 'foreign') return undefined;
  const { owners, isAdopted } = ownership;
  if (owners.some(({ installation }) => installation === context.installation)) return undefined;
  const others = owners.filter(owner => !isStale(owner, context, context.staleMs));
  const removed = owners.length - others.length;
  if (others.length > 0 || isAdopted) {
    if (removed === 0) return undefined;
    return { fields: withOnly(service, others, isAdopted), removed, isTakenOver: false };
  }
  const { installation, object, now } = context;
  const own = { installation, cluster: 'unknown', object, strategy: 'shared', ports: [], tags: [] } as const;
  const annotations = withOwners(service.annotations, [{ ...own, heartbeat: now, leaving: now }], false);
  return { fields: { ...service.fields, annotations }, removed, isTakenOver: true };
}

type SweepDeps = {
  readonly api: Pick<ControlApi, 'service' | 'putService' | 'serviceHosts'>;
  readonly devices: readonly Device[];
};

/** Reads a service again, decides by that, and writes it; undefined where there was nothing to do. */
async function sweepOne(
  name: string,
  context: Context,
  { api, devices }: SweepDeps,
): Promise<Done | undefined> {
  const service = await api.service(name);
  const planned = service && sweep(service, context);
  if (!planned) return undefined;
  const { fields, removed, isTakenOver } = planned;
  if (isTakenOver) {
    const hosts = new Set((await api.serviceHosts(name)).map(({ deviceId }) => deviceId));
    if (devices.some(({ id, isOnline }) => isOnline && hosts.has(id))) return undefined;
  }
  await api.putService(name, fields);
  return { service: name, removed, isTakenOver };
}
