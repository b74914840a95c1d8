import { recordOf } from '../../../api/json.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import type { Device, TailnetView } from '../../../control/control.ts';
import type { OwnNamespace } from '../../../store/own-namespace.ts';
import type { Index, ReadObjects } from '../../../store/resources.ts';
import { MESH_POD } from '../../../api/names.ts';
import type { KeyHistories } from './key-history.ts';
import { desiredOf, deviceOf, isReady, meshPodSecretOf, poolTailnetsOf } from './mesh-pods.ts';
import type { MeshPod, MeshPodSecret, PoolNames } from './mesh-pods.ts';
import type { MeshdState } from './meshd-state.ts';
import { missingAfter } from './missing.ts';
import type { ListedByPod, MissingByPod } from './missing.ts';
import { POOL_ANNOTATIONS } from './objects.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** Mesh pods by the name of their MeshTailnet. */
export const podsByTailnet: Index<'Pod'> = {
  name: 'mesh pods by MeshTailnet',
  kind: 'Pod',
  valuesOf: poolTailnetsOf,
};

/** The StatefulSet of a pool, as it is. */
type StatefulSetState = {
  readonly replicas: number;
  /** How many ordinals may have a Secret. */
  readonly ordinals: number;
  readonly specHash: string;
  /** Of the pod template that pods should have; undefined until its controller has seen the last change. */
  readonly updateRevision: string | undefined;
  /** How many pods there are; undefined until its controller has seen the last change. */
  readonly pods: number | undefined;
};

/** How many pods run, and how many ordinals may have a Secret. */
export type PoolSize = { readonly replicas: number; readonly ordinals: number };

/** Everything that decides what is done about a pool, and its status. */
export type Input = {
  /** The desired number of mesh pods; 0 removes the pool. */
  readonly desired: number;
  readonly statefulSet: StatefulSetState | undefined;
  /** Of the objects of a pool of this size. */
  readonly specHashOf: (size: PoolSize) => string;
  /** By ordinal: all desired ones, and all that may have a Secret. */
  readonly meshPods: readonly MeshPod[];
  readonly missing: MissingByPod;
  readonly keys: KeyHistories;
  /** The names of mesh pods that get another device in place of one that was removed, until they carry traffic. */
  readonly replaced: ReadonlySet<string>;
  readonly isAuthenticated: boolean;
  /** Whether a device whose node key has expired stays expired when it logs in again, as those with tags do on headscale. */
  readonly keepsExpiry: boolean;
  /** Otherwise mesh pods are left as they are. */
  readonly isControlServerKnown: boolean;
  /** What the meshd of mesh pods reported last, by the names of the pods. */
  readonly meshd: ReadonlyMap<string, MeshdState>;
  /** Where Envoy reaches the pool: the address of its Service. */
  readonly proxyAddress: string | undefined;
  readonly now: Date;
};

export type GatherDeps = {
  readonly read: ReadObjects;
  readonly ownNamespace: OwnNamespace;
  readonly now: () => Date;
};

/** What is known of a pool before it is read; `missing` and `replaced` are those of the last reconcile. */
export type GatherOptions = Omit<
  Input,
  'desired' | 'statefulSet' | 'meshPods' | 'keepsExpiry' | 'proxyAddress' | 'now'
> & {
  readonly tailnet: MeshTailnet;
  readonly names: PoolNames;
  readonly view: TailnetView | undefined;
  readonly listed: ListedByPod;
  /** Requests a device by its id. */
  readonly requestDevice: (id: string) => Promise<Device | undefined>;
};

/** Reads a pool: its StatefulSet, its Service, the Secrets of its mesh pods; pods and devices are known. */
export async function gather(options: GatherOptions, deps: GatherDeps): Promise<Input> {
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
  const { specHashOf, keys, replaced, meshd, isAuthenticated, isControlServerKnown } = options;
  const { missing: before, listed, requestDevice } = options;
  return {
    desired,
    statefulSet: state,
    specHashOf,
    meshPods,
    missing: await missingAfter(meshPods, { view, before, listed, now, requestDevice }),
    keys,
    replaced,
    isAuthenticated,
    // The API of headscale has no VIP services.
    keepsExpiry: view?.hasServices === false,
    isControlServerKnown,
    meshd,
    proxyAddress: service && addressOf(service),
    now,
  };
}

/** Reads what the meshd at the address of a mesh pod reports; undefined where it does not respond. */
export type ReadMeshd = (address: string) => Promise<MeshdState | undefined>;

/** What the mesh pods that are ready report about themselves. */
export async function readMeshdStates(
  tailnet: string,
  { read, readMeshd }: Pick<GatherDeps, 'read'> & { readonly readMeshd: ReadMeshd },
): Promise<Input['meshd']> {
  const ready = read.find(podsByTailnet, tailnet).filter(pod => isReady({ pod }));
  const states = ready.map(async ({ metadata, status }): Promise<readonly [string, MeshdState][]> => {
    const [address] = status.addresses;
    const state = address === undefined ? undefined : await readMeshd(address);
    return state ? [[metadata.name, state]] : [];
  });
  return new Map((await Promise.all(states)).flat());
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
    recordOf(object['metadata']),
    recordOf(object['spec']),
    recordOf(object['status']),
  ];
  const annotations = recordOf(metadata['annotations']);
  const isObserved = status['observedGeneration'] === metadata['generation'];
  const revision = status['updateRevision'];
  return {
    replicas: numberOf(spec['replicas']),
    ordinals: numberOf(Number(annotations[POOL_ANNOTATIONS.ordinals])),
    specHash: String(annotations[POOL_ANNOTATIONS.specHash]),
    updateRevision: isObserved && typeof revision === 'string' ? revision : undefined,
    pods: isObserved ? numberOf(status['replicas']) : undefined,
  };
}

/** Ordinals come from an annotation, which others may change. */
const MAX_ORDINALS = 64;

function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? Math.min(Math.trunc(value), MAX_ORDINALS) : 0;
}

/** The address of the Service, at which Envoy reaches whichever mesh pods are ready. */
function addressOf(service: Readonly<Record<string, unknown>>): string | undefined {
  const { clusterIP } = recordOf(service['spec']);
  if (typeof clusterIP !== 'string' || clusterIP === '' || clusterIP === 'None') return undefined;
  return clusterIP.includes(':')
    ? `[${clusterIP}]:${MESH_POD.ports.proxy}`
    : `${clusterIP}:${MESH_POD.ports.proxy}`;
}
