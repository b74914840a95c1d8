import { isRecord } from '../../../api/json.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import type { Device, TailnetView } from '../../../control/control.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import type { Index, ReadObjects } from '../../../store/resources.ts';
import { MESH_POD, RELAY } from '../../../api/names.ts';
import { desiredOf, deviceOf, meshPodSecretOf, poolTailnetsOf } from './mesh-pods.ts';
import type { MeshPod, MeshPodSecret, PoolNames } from './mesh-pods.ts';
import { POOL_ANNOTATIONS } from './objects.ts';
import type { PoolSituation, PoolSize, StatefulSetState } from './plan.ts';
import { missingAfter } from './missing.ts';
import type { MissingByPod } from './missing.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** Mesh pods by the name of their MeshTailnet. */
export const podsByTailnet: Index<'Pod'> = {
  name: 'mesh pods by MeshTailnet',
  kind: 'Pod',
  valuesOf: poolTailnetsOf,
};

export type GatherPoolDeps = {
  readonly read: ReadObjects;
  readonly ownNamespace: OwnNamespace;
  readonly now: () => Date;
};

export type GatherPoolOptions = {
  readonly tailnet: MeshTailnet;
  readonly names: PoolNames;
  readonly hasUdp: boolean;
  readonly specHashOf: (size: PoolSize) => string;
  readonly view: TailnetView | undefined;
  readonly isAuthenticated: boolean;
  /** Of the last pass. */
  readonly missing: MissingByPod;
  readonly keys: PoolSituation['keys'];
  readonly replaced: PoolSituation['replaced'];
  readonly meshd: PoolSituation['meshd'];
  /** Requests a device by its id. */
  readonly requestDevice: (id: string) => Promise<Device | undefined>;
};

/** A pool as it is, and where Envoy reaches it. */
export type GatheredPool = {
  readonly situation: PoolSituation;
  readonly proxyAddress: string | undefined;
};

/** Reads a pool: its StatefulSet, its Service, the Secrets of its mesh pods; pods and devices are known. */
export async function gatherPool(options: GatherPoolOptions, deps: GatherPoolDeps): Promise<GatheredPool> {
  const { tailnet, names, view } = options;
  const { ownNamespace, read } = deps;
  const desired = desiredOf(tailnet);
  const [statefulSet, service] = await Promise.all([
    ownNamespace.get('StatefulSet', names.pool),
    ownNamespace.get('Service', names.pool),
  ]);
  const state = statefulSet && stateOf(statefulSet);
  const pods = read.find(podsByTailnet, tailnet.metadata.name);
  const count = Math.max(desired, state?.ordinals ?? 0, tailnet.status?.pool?.members?.length ?? 0);
  const devices = view?.devices ?? [];
  const meshPods = await Promise.all(
    Array.from({ length: count }, async (_, ordinal): Promise<MeshPod> => {
      const [name, hostname] = [names.pod(ordinal), names.hostname(ordinal)];
      const stored = await ownNamespace.secret(name);
      const decoded = stored && meshPodSecretOf(stored);
      const secret = decoded && withoutForeignId(decoded, hostname, devices);
      const hasForeignSecret = stored !== undefined && !decoded;
      const pod = pods.find(({ metadata }) => metadata.name === name);
      const device = deviceOf({ hostname, secret }, devices, tailnet.spec.tags);
      return { ordinal, name, hostname, secret, hasForeignSecret, pod, device };
    }),
  );
  const now = deps.now();
  const { hasUdp, specHashOf, isAuthenticated, keys, replaced, meshd, requestDevice } = options;
  const missing = await missingAfter(meshPods, { view, before: options.missing, now, requestDevice });
  const situation = {
    desired,
    hasUdp,
    statefulSet: state,
    specHashOf,
    meshPods,
    missing,
    keys,
    replaced,
    meshd,
    isAuthenticated,
    now,
  };
  return { situation, proxyAddress: service && addressOf(service) };
}

/** The id of a device with another hostname is ignored: its pod does not own it, and it must never be deleted. */
function withoutForeignId(
  secret: MeshPodSecret,
  hostname: string,
  devices: readonly Device[],
): MeshPodSecret {
  const claimed = devices.find(({ id }) => id === secret.deviceId);
  return claimed && claimed.hostname !== hostname ? { ...secret, deviceId: undefined } : secret;
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
    ordinals: numberOf(Number(annotations[POOL_ANNOTATIONS.ordinals])),
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
const MAX_ORDINALS = 64;

function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? Math.min(Math.trunc(value), MAX_ORDINALS) : 0;
}

/** The address of the Service, at which Envoy reaches whichever mesh pods are ready. */
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
