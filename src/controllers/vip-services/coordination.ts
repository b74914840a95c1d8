import { ControlError } from '../../control/control.ts';
import type { Clock } from '../../api/clock.ts';
import type { ControlApi, Device, VipService } from '../../control/control.ts';
import type { Log } from '../../telemetry/log.ts';
import type { VipServiceState } from '../mesh-endpoints/vip-services.ts';
import type { Claim, Context, Result } from './decision.ts';
import { NO_HOSTS, readHosts, withHosts } from './hosts.ts';
import type { HostsMemory } from './hosts.ts';
import { ownersOf } from './owners.ts';
import { OF_ALL, onlineIn, perform } from './perform.ts';
import { inOrder, plan } from './plan.ts';
import type { Plan } from './plan.ts';
import { seenAfter } from './seen-owners.ts';
import type { SeenOwners } from './seen-owners.ts';

/** Services that are written in one reconcile, so that others come in between. */
const MAX_WRITES = 20;

/** The first list after a write shows whether another process has overwritten it; all of them do so at other times. */
const [VERIFY_MS, VERIFY_JITTER_MS] = [3000, 5000];

/** A service that cannot be written is tried again after this time, and twice as long each time. */
const [RETRY_MS, MAX_RETRY_MS] = [30_000, 300_000];

type Failure = { readonly error: ControlError; readonly times: number; readonly retryAt: number };

/** What is kept of a tailnet between two reconciles. */
export type Memory = {
  readonly hosts: HostsMemory;
  /** Since when all owners of a service are removing it, by the clock. */
  readonly leaving: ReadonlyMap<string, number>;
  /** By the service, and what was wanted of it. */
  readonly failures: ReadonlyMap<string, Failure>;
  readonly listsWithout: number;
  readonly seen: SeenOwners;
};

export const NOTHING_KNOWN: Memory = {
  hosts: NO_HOSTS,
  leaving: new Map(),
  failures: new Map(),
  listsWithout: 0,
  seen: new Map(),
};

export type CoordinationOptions = {
  /** All services of the tailnet, as they were just listed. */
  readonly services: readonly VipService[];
  readonly claims: ReadonlyMap<string, Claim>;
  /** The services that mesh pods of this installation advertise. */
  readonly advertised: ReadonlySet<string>;
  readonly before: Memory;
  /** The devices of the tailnet; undefined where none were listed. */
  readonly devices: readonly Device[] | undefined;
  /** Whether they are as they were, since the last list has failed. */
  readonly isStale: boolean;
  /** The tags of the mesh pods. */
  readonly tags: readonly string[];
  readonly api: Pick<ControlApi, 'service' | 'putService' | 'deleteService' | 'serviceHosts'>;
  readonly signal?: AbortSignal;
};

export type CoordinationDeps = {
  /** The id of this installation. */
  readonly installation: string;
  readonly clock: Pick<Clock, 'now'>;
  /** The time of day. */
  readonly now: () => Date;
  readonly random: () => number;
  readonly count: (result: Result) => void;
  /** For what no status can have. */
  readonly log: Pick<Log, 'warn'>;
};

export type Coordinated = {
  readonly memory: Memory;
  /** By the name of the service. */
  readonly states: ReadonlyMap<string, VipServiceState>;
  /** When there is something to do even if nothing changes. */
  readonly nextMs: number;
};

/** Writes the services of a tailnet that are not as they are claimed, and returns what claims are shown as. */
export async function coordinate(
  { services, claims, advertised, before, devices, isStale, tags, api, signal }: CoordinationOptions,
  { installation, clock, now, random, count, log }: CoordinationDeps,
): Promise<Coordinated> {
  const online = devices && !isStale ? new Set(onlineIn(devices, tags)) : undefined;
  const seen = seenAfter(before.seen, services, { names: claims.keys(), now: now().getTime() });
  const contextOf = (service: string): Context => ({
    installation,
    seen: seen.get(service) ?? [],
    now: now(),
    isOnline: other => online?.has(other) ?? true,
    leavingForMs: clock.now() - (before.leaving.get(service) ?? clock.now()),
  });
  const planned = plan({ services, claims, contextOf });
  const keyOf = (service: string) => `${service} ${JSON.stringify(claims.get(service))}`;
  const isPaused = (service: string) => (before.failures.get(keyOf(service))?.retryAt ?? 0) > clock.now();
  const due = inOrder(planned.due.filter(({ name }) => !isPaused(name)));
  const options = { claims, contextOf, devices, ...(signal && { signal }) };
  const { written, failures } = await perform(due.slice(0, MAX_WRITES), options, { api, count });
  for (const [service, error] of failures) {
    const isKnown = before.failures.get(keyOf(service))?.error.reason === error.reason;
    if (claims.has(service) || isKnown || OF_ALL.has(error.reason)) continue;
    log.warn('a VIP service that no object lists cannot be removed yet', { service, why: error.message });
  }
  const failed = failuresAfter(before.failures, { planned, failures, keyOf, now: clock.now() });
  const names = [...planned.states].flatMap(([name, { status }]) => (status === 'Registered' ? [name] : []));
  const byName = new Map(services.map(service => [service.name, service]));
  const byId = new Map(devices?.map(device => [device.id, device]));
  const onlineIds = new Set(devices?.filter(({ isOnline }) => isOnline).map(({ id }) => id));
  const hosts = await readHosts(
    { names, advertised, before: before.hosts, online: onlineIds, now: clock.now() },
    api,
  );
  const states = new Map(
    [...planned.states].map(([name, state]) => {
      const failure = failed.get(keyOf(name));
      const owners = ownersOf(byName.get(name));
      const known = hosts.memory.byService.get(name)?.hosts;
      const served = { name, hosts: known, owners, devices: byId, online: onlineIds, tags };
      return [name, failure ? failedState(state, failure) : withHosts(state, served)] as const;
    }),
  );
  const isClear = claims.size === 0 && planned.owned === 0;
  const leaving = [...planned.leaving].map(name => [name, before.leaving.get(name) ?? clock.now()] as const);
  const listsWithout = isClear ? before.listsWithout + 1 : 0;
  const verifyMs = written.length > 0 || isClear ? VERIFY_MS + VERIFY_JITTER_MS * random() : Infinity;
  const moreMs = due.length > MAX_WRITES ? 1000 : Infinity;
  return {
    memory: { hosts: hosts.memory, leaving: new Map(leaving), failures: failed, listsWithout, seen },
    states,
    nextMs: Math.min(moreMs, verifyMs, planned.nextMs, hosts.nextMs),
  };
}

type FailuresOptions = {
  readonly planned: Plan;
  readonly failures: ReadonlyMap<string, ControlError>;
  readonly keyOf: (service: string) => string;
  readonly now: number;
};

/** Without those of services that are not to be written any more, or otherwise. */
function failuresAfter(
  before: Memory['failures'],
  { planned, failures, keyOf, now }: FailuresOptions,
): Memory['failures'] {
  const after = planned.due.flatMap(({ name: service }) => {
    const key = keyOf(service);
    const [error, known] = [failures.get(service), before.get(key)];
    if (!error) return known && known.retryAt > now ? [[key, known] as const] : [];
    const times = (known?.times ?? 0) + 1;
    const retryAt = now + Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** (times - 1));
    // The words of a server may differ each time.
    const isAlike = known?.error.reason === error.reason;
    return [[key, { error: isAlike ? known.error : error, times, retryAt }] as const];
  });
  return new Map(after);
}

function failedState({ vipAddress }: VipServiceState, { error }: Failure): VipServiceState {
  const { reason, message: text } = error;
  return { status: 'Failed', reason, text, ...(vipAddress !== undefined && { vipAddress }) };
}
