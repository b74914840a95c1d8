import { ControlError } from '../../control/control.ts';
import type { ControlApi, Device, ServiceHost } from '../../control/control.ts';
import type { VipServiceState } from '../mesh-endpoints/vip-services.ts';
import type { Owner } from './owners.ts';
import { installationOf } from './perform.ts';

/** The devices that advertise services, as they were read last, and when, by the clock. */
export type HostsByService = ReadonlyMap<
  string,
  { readonly hosts: readonly ServiceHost[]; readonly at: number }
>;

/** How many services have their hosts read in which time, however many lists that has; and how old what is known of one must be. */
const [MAX_READS, READS_MS, MIN_AGE_MS] = [20, 30_000, 60_000];

export type ReadHostsOptions = {
  /** The registered services of this installation. */
  readonly names: readonly string[];
  readonly known: HostsByService;
  readonly now: number;
};

/** Reads the hosts of the services for which that is longest ago; one request each, so that not all are read each time. */
export async function readHosts(
  { names, known, now }: ReadHostsOptions,
  api: Pick<ControlApi, 'serviceHosts'>,
): Promise<HostsByService> {
  const read = new Map(names.flatMap(name => (known.has(name) ? [[name, known.get(name)] as const] : [])));
  const ages = names.map(name => [name, now - (known.get(name)?.at ?? -Infinity)] as const);
  const due = ages
    .filter(([, ageMs]) => ageMs >= MIN_AGE_MS)
    .sort(([, one], [, other]) => (one > other ? -1 : 1));
  const recent = ages.filter(([, ageMs]) => ageMs < READS_MS).length;
  for (const [name] of due.slice(0, Math.max(0, MAX_READS - recent))) {
    try {
      read.set(name, { hosts: await api.serviceHosts(name), at: now });
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      if (error.reason !== 'NotFound') break;
    }
  }
  return new Map([...read].flatMap(([name, hosts]) => (hosts ? [[name, hosts] as const] : [])));
}

export type ServedOptions = {
  readonly name: string;
  readonly hosts: readonly ServiceHost[] | undefined;
  readonly owners: readonly Owner[];
  readonly devices: readonly Device[];
  /** The tags of the mesh pods. */
  readonly tags: readonly string[];
};

/** A registration with what is known of its hosts. */
export function withHosts(
  state: VipServiceState,
  { name, hosts, owners, devices, tags }: ServedOptions,
): VipServiceState {
  const byId = new Map(devices.map(device => [device.id, device]));
  const countOf = ({ installation }: Owner) =>
    (hosts ?? []).filter(({ deviceId, isApproved }) => {
      const device = byId.get(deviceId);
      return isApproved && device?.isOnline === true && installationOf(device) === installation;
    }).length;
  const shown = owners.slice(0, MAX_OWNERS).map(owner => ({
    cluster: owner.cluster.slice(0, MAX_CLUSTER_LENGTH),
    object: owner.object.slice(0, MAX_OBJECT_LENGTH),
    hosts: countOf(owner),
  }));
  const owned = shown.length === 0 ? state : { ...state, owners: shown };
  if (owned.status !== 'Registered' || !hosts) return owned;
  if (hosts.some(({ deviceId, isApproved }) => isApproved && byId.get(deviceId)?.isOnline === true)) {
    return { ...owned, reason: 'Served', message: 'it is registered, and devices that are online serve it' };
  }
  const waiting = hosts.filter(({ isApproved }) => !isApproved).length;
  if (waiting === 0) return owned;
  const entry = JSON.stringify({ autoApprovers: { services: { [name]: tags } } });
  const message = `${waiting} ${waiting === 1 ? 'device waits' : 'devices wait'} for approval to serve it: approve in the admin console, or add to the policy file of the tailnet: ${entry}`;
  return { ...owned, status: 'Pending', reason: 'NotApproved', message };
}

/** As in the schema. */
const [MAX_OWNERS, MAX_CLUSTER_LENGTH, MAX_OBJECT_LENGTH] = [8, 64, 320];
