import { isRecord } from '../../api/json.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { Device, TailnetView } from '../../control/control.ts';
import type { OwnNamespace } from '../../resources/own-namespace.ts';
import type { Index, ReadResources } from '../../resources/resources.ts';
import { MESH_POD, RELAY } from '../../api/names.ts';
import { desiredOf, deviceOf, isPast, isReady, memberSecretOf, poolTailnetsOf } from './members.ts';
import type { Member, MemberSecret, PoolNames } from './members.ts';
import { POOL_ANNOTATIONS } from './objects.ts';
import type { PoolSituation, PoolSize, StatefulSetState } from './plan.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** Mesh pods by the name of their MeshTailnet. */
export const podsByTailnet: Index<'Pod'> = {
  name: 'mesh pods by MeshTailnet',
  kind: 'Pod',
  valuesOf: poolTailnetsOf,
};

export type GatherPoolDeps = {
  readonly read: ReadResources;
  readonly workloads: OwnNamespace;
  readonly now: () => Date;
};

export type GatherPoolOptions = {
  readonly tailnet: MeshTailnet;
  readonly names: PoolNames;
  readonly hasDatagrams: boolean;
  readonly specHashOf: (size: PoolSize) => string;
  readonly view: TailnetView | undefined;
  readonly isAuthenticated: boolean;
  /** Of the last pass. */
  readonly suspects: Suspects;
  readonly renewed: PoolSituation['renewed'];
};

/** The members that a list of devices showed without a usable identity: the time of that list by the name of the pod. */
export type Suspects = ReadonlyMap<string, number>;

/** A pool as it is, and where Envoy reaches it. */
export type GatheredPool = {
  readonly situation: PoolSituation;
  readonly suspects: Suspects;
  readonly proxyAddress: string | undefined;
};

/** Reads a pool: its StatefulSet, its Service, the Secrets of its members; pods and devices are known. */
export async function gatherPool(options: GatherPoolOptions, deps: GatherPoolDeps): Promise<GatheredPool> {
  const { tailnet, names, view } = options;
  const { workloads, read } = deps;
  const desired = desiredOf(tailnet);
  const [statefulSet, service] = await Promise.all([
    workloads.get('StatefulSet', names.pool),
    workloads.get('Service', names.pool),
  ]);
  const state = statefulSet && stateOf(statefulSet);
  const pods = read.find(podsByTailnet, tailnet.metadata.name);
  const count = Math.max(desired, state?.members ?? 0, tailnet.status?.pool?.members?.length ?? 0);
  const devices = view?.devices ?? [];
  const members = await Promise.all(
    Array.from({ length: count }, async (_, ordinal): Promise<Member> => {
      const [name, hostname] = [names.pod(ordinal), names.hostname(ordinal)];
      const stored = await workloads.secret(name);
      const decoded = stored && memberSecretOf(stored);
      const secret = decoded && withoutForeignId(decoded, hostname, devices);
      const hasForeignSecret = stored !== undefined && !decoded;
      const pod = pods.find(({ metadata }) => metadata.name === name);
      const device = deviceOf({ hostname, secret }, devices, tailnet.spec.tags);
      return { ordinal, name, hostname, secret, hasForeignSecret, pod, device };
    }),
  );
  const now = deps.now();
  const { suspects, lost } = suspectsAfter(members, view, options.suspects, now);
  const { hasDatagrams, specHashOf, isAuthenticated, renewed } = options;
  const situation = {
    desired,
    hasDatagrams,
    statefulSet: state,
    specHashOf,
    members,
    lost,
    renewed,
    isAuthenticated,
    now,
  };
  return { situation, suspects, proxyAddress: service && addressOf(service) };
}

/** The id of a device with another hostname is ignored: its pod does not own it, and it must never be deleted. */
function withoutForeignId(secret: MemberSecret, hostname: string, devices: readonly Device[]): MemberSecret {
  const claimed = devices.find(({ id }) => id === secret.deviceId);
  return claimed && claimed.hostname !== hostname ? { ...secret, deviceId: undefined } : secret;
}

/** Lists of a control API may be this late. */
const LATE_MS = 60_000;

/**
 * A member whose key was used is lost once all lists of a minute show no device of it while it is not ready, or two lists in a
 * row one whose node key has expired: the first may be older than its login.
 */
function suspectsAfter(
  members: readonly Member[],
  view: TailnetView | undefined,
  before: Suspects,
  now: Date,
): { readonly suspects: Suspects; readonly lost: ReadonlySet<string> } {
  const listedAt = view?.isStale === false ? view.lastSuccess?.getTime() : undefined;
  if (listedAt === undefined) return { suspects: before, lost: new Set() };
  const isSuspect = (member: Member) => {
    const { secret, device } = member;
    if (!secret || secret.hasKey || isReady(member)) return false;
    return !device || hasExpired(device.expires, now);
  };
  const found = members.filter(isSuspect);
  const suspects = new Map(found.map(({ name }) => [name, before.get(name) ?? listedAt]));
  const isLost = ({ name, device }: Member) =>
    // The clock may have been set back.
    Math.abs(listedAt - (suspects.get(name) ?? listedAt)) >= (device ? 1 : LATE_MS);
  return { suspects, lost: new Set(found.filter(isLost).map(({ name }) => name)) };
}

function hasExpired(expires: string | undefined, now: Date): boolean {
  return expires !== undefined && isPast(new Date(expires), now);
}

function stateOf(object: Readonly<Record<string, unknown>>): StatefulSetState {
  const [metadata, spec, status] = [
    fieldsOf(object['metadata']),
    fieldsOf(object['spec']),
    fieldsOf(object['status']),
  ];
  const annotations = fieldsOf(metadata['annotations']);
  const isObserved = status['observedGeneration'] === metadata['generation'];
  const revision = status['updateRevision'];
  return {
    replicas: numberOf(spec['replicas']),
    members: numberOf(Number(annotations[POOL_ANNOTATIONS.members])),
    specHash: String(annotations[POOL_ANNOTATIONS.specHash]),
    hasRelay: hasContainer(spec, RELAY.container),
    updateRevision: isObserved && typeof revision === 'string' ? revision : undefined,
    pods: isObserved ? numberOf(status['replicas']) : undefined,
  };
}

function hasContainer(spec: Readonly<Record<string, unknown>>, name: string): boolean {
  const { containers } = fieldsOf(fieldsOf(spec['template'])['spec']);
  return Array.isArray(containers) && containers.some(container => fieldsOf(container)['name'] === name);
}

/** Ordinals come from an annotation, which others may change. */
const MOST_MEMBERS = 64;

function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? Math.min(Math.trunc(value), MOST_MEMBERS) : 0;
}

/** The address of the Service, at which Envoy reaches whichever members are ready. */
function addressOf(service: Readonly<Record<string, unknown>>): string | undefined {
  const { clusterIP } = fieldsOf(service['spec']);
  if (typeof clusterIP !== 'string' || clusterIP === '' || clusterIP === 'None') return undefined;
  return clusterIP.includes(':')
    ? `[${clusterIP}]:${MESH_POD.ports.proxy}`
    : `${clusterIP}:${MESH_POD.ports.proxy}`;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
