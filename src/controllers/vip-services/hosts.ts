import type { ProblemAt } from '../../api/problem.ts';
import { cutText } from '../../api/text.ts';
import { ControlError } from '../../control/control.ts';
import type { ControlApi, Device, ServiceHost } from '../../control/control.ts';
import type { VipServiceState } from '../mesh-endpoints/vip-services.ts';
import { placeOf } from './decision.ts';
import { shareLine, unsharedOf } from './owners.ts';
import type { Owner } from './owners.ts';
import { installationOf } from './perform.ts';

/** The devices that advertise services, as they were read last. */
export type HostsMemory = {
  readonly byService: ReadonlyMap<string, KnownHosts>;
  /** When the last reads were made, by the clock. */
  readonly reads: readonly number[];
};

type KnownHosts = {
  readonly hosts: readonly ServiceHost[];
  /** When they were read, by the clock. */
  readonly at: number;
  /** Since when it is expected to be served, and is not. */
  readonly awaitedSince: number | undefined;
};

export const NO_HOSTS: HostsMemory = { byService: new Map(), reads: [] };

/** How many requests may read hosts in which time, however many services there are. */
const [MAX_READS, READS_MS] = [20, 30_000];

/** How old what is known of a service must be before its hosts are read again. */
const INTERVAL_MS = 60_000;

/** The same while it is expected to be served, and is not: as long as that has lasted, between these, for three minutes. */
const [MIN_AWAITED_MS, MAX_AWAITED_MS, AWAITED_FOR_MS] = [2000, 10_000, 180_000];

function intervalMsOf({ at, awaitedSince = -Infinity }: KnownHosts): number {
  const forMs = at - awaitedSince;
  if (forMs > AWAITED_FOR_MS) return INTERVAL_MS;
  return Math.min(MAX_AWAITED_MS, Math.max(MIN_AWAITED_MS, forMs));
}

export type ReadHostsOptions = {
  /** The registered services of this installation. */
  readonly names: readonly string[];
  /** Those of them that mesh pods advertise. */
  readonly advertised: ReadonlySet<string>;
  readonly before: HostsMemory;
  /** The devices that are online, by ID. */
  readonly online: ReadonlySet<string>;
  readonly now: number;
};

export type ReadHosts = {
  readonly memory: HostsMemory;
  /** When those of a service that is expected to be served are to be read again. */
  readonly nextMs: number;
};

/** Reads the hosts of the services for which it is time, those that are most overdue first; one request each. */
export async function readHosts(
  { names, advertised, before, online, now }: ReadHostsOptions,
  api: Pick<ControlApi, 'serviceHosts'>,
): Promise<ReadHosts> {
  const byService = new Map<string, KnownHosts>();
  const note = (name: string, hosts: readonly ServiceHost[], at: number) => {
    const isAwaited = advertised.has(name) && !isServed(hosts, online);
    const awaitedSince = isAwaited ? (before.byService.get(name)?.awaitedSince ?? now) : undefined;
    byService.set(name, { hosts, at, awaitedSince });
  };
  for (const name of names) {
    const known = before.byService.get(name);
    if (known) note(name, known.hosts, known.at);
  }
  const overdueOf = (name: string) => {
    const known = byService.get(name);
    return known ? (now - known.at) / intervalMsOf(known) : Infinity;
  };
  const due = names
    .filter(name => overdueOf(name) >= 1)
    .sort((one, other) => (overdueOf(one) > overdueOf(other) ? -1 : 1));
  const reads = before.reads.filter(at => now - at < READS_MS);
  let isAnswered = true;
  for (const name of due.slice(0, MAX_READS - reads.length)) {
    reads.push(now);
    try {
      note(name, await api.serviceHosts(name), now);
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      // As it was, so that one that cannot be read is not the first of all each time.
      note(name, byService.get(name)?.hosts ?? [], now);
      isAnswered = false;
      if (error.reason !== 'NotFound') break;
    }
  }
  const awaited = [...byService.values()].filter(({ awaitedSince }) => awaitedSince !== undefined);
  const mayRead = isAnswered && reads.length < MAX_READS;
  const nextMs = mayRead ? Math.min(...awaited.map(known => known.at + intervalMsOf(known) - now)) : Infinity;
  return { memory: { byService, reads }, nextMs };
}

function isServed(hosts: readonly ServiceHost[], online: ReadonlySet<string>): boolean {
  return hosts.some(({ deviceId, isApproved }) => isApproved && online.has(deviceId));
}

export type ServedOptions = {
  readonly name: string;
  readonly hosts: readonly ServiceHost[] | undefined;
  readonly owners: readonly Owner[];
  /** By ID. */
  readonly devices: ReadonlyMap<string, Device>;
  /** Those that are online. */
  readonly online: ReadonlySet<string>;
  /** The tags of the mesh pods. */
  readonly tags: readonly string[];
};

/** A registration with what is known of its hosts. */
export function withHosts(
  state: VipServiceState,
  { name, hosts, owners, devices, online, tags }: ServedOptions,
): VipServiceState {
  const countOf = ({ installation }: Owner) =>
    (hosts ?? []).filter(({ deviceId, isApproved }) => {
      const device = devices.get(deviceId);
      return isApproved && device?.isOnline === true && installationOf(device) === installation;
    }).length;
  const shown = owners.slice(0, MAX_OWNERS).map(owner => ({
    installation: cutText(owner.installation, MAX_CLUSTER_LENGTH),
    cluster: cutText(owner.cluster, MAX_CLUSTER_LENGTH),
    object: cutText(owner.object, MAX_OBJECT_LENGTH),
    hosts: countOf(owner),
  }));
  const ofOwners = state.status === 'Registered' ? notShared(owners) : [];
  const warnings = [...(state.warnings ?? []), ...ofOwners];
  const owned = {
    ...state,
    ...(shown.length > 0 && { owners: shown }),
    ...(warnings.length > 0 && { warnings }),
  };
  if (owned.status !== 'Registered' || !hosts) return owned;
  if (isServed(hosts, online)) {
    return { ...owned, reason: 'Served', text: 'it is registered, and devices that are online serve it' };
  }
  const waiting = hosts.filter(({ isApproved }) => !isApproved).length;
  if (waiting === 0) return owned;
  const entry = JSON.stringify({ autoApprovers: { services: { [name]: tags } } });
  const text = `${waiting} ${waiting === 1 ? 'device waits' : 'devices wait'} for approval to serve it`;
  const fix = `approve in the admin console, or add to the policy file of the tailnet: ${entry}`;
  return { ...owned, status: 'Pending', reason: 'NotApproved', text, fix };
}

/** What was shared before owners decided about that stays for one version. */
function notShared(owners: readonly Owner[]): readonly ProblemAt<'MeshEndpoints status.vipServices'>[] {
  const first = owners.find(({ leaving }) => !leaving);
  return unsharedOf(owners).map(owner => ({
    reason: 'NotShared',
    text: `${placeOf(owner)} serves it without being asked to, which a later version ends`,
    fix: `add ${shareLine(owner)} to the entry of ${first ? placeOf(first) : ''}`,
  }));
}

/** As in the schema. */
const [MAX_OWNERS, MAX_CLUSTER_LENGTH, MAX_OBJECT_LENGTH] = [8, 64, 320];
