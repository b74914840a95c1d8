import { createHash } from 'node:crypto';
import type { SimulatedKubelet } from './kubelet.ts';
import type { MemoryNamespace, StoredObject } from './namespace.ts';

type StatefulSet = StoredObject & {
  readonly spec: {
    readonly replicas?: number;
    readonly podManagementPolicy?: string;
    readonly updateStrategy?: { readonly type?: string };
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly serviceAccountName: string;
        readonly containers: readonly {
          readonly name: string;
          readonly env: readonly { readonly name: string; readonly value?: string }[];
        }[];
      };
    };
  };
};

type Deps = {
  readonly namespace: MemoryNamespace;
  readonly kubelet: SimulatedKubelet;
  /** The uids of the MeshTailnets that exist. */
  readonly owners: () => readonly string[];
};

/**
 * One step of the controller of StatefulSets, with podManagementPolicy Parallel and updateStrategy OnDelete, and of the
 * garbage collector.
 */
export function stepStatefulSets({ namespace, kubelet, owners }: Deps, newUid: () => string): void {
  const existing = owners();
  for (const { kind, metadata } of namespace.list()) {
    const { ownerReferences = [] } = metadata;
    const isOwned = ownerReferences.length > 0;
    if (isOwned && !ownerReferences.some(({ uid }) => existing.includes(uid))) {
      namespace.delete(kind, metadata.name);
    }
  }
  const sets = namespace.list().filter((object): object is StatefulSet => object.kind === 'StatefulSet');
  for (const pod of kubelet.names()) if (!sets.some(set => ordinalOf(set, pod) >= 0)) kubelet.delete(pod);
  for (const set of sets) stepOne(set, { namespace, kubelet }, newUid);
}

function stepOne(
  set: StatefulSet,
  { namespace, kubelet }: Pick<Deps, 'namespace' | 'kubelet'>,
  newUid: () => string,
): void {
  const { replicas = 1, template, podManagementPolicy, updateStrategy } = set.spec;
  if (podManagementPolicy !== 'Parallel' || updateStrategy?.type !== 'OnDelete') {
    throw new Error('only Parallel and OnDelete are simulated');
  }
  const { name, generation } = set.metadata;
  const hash = createHash('sha256').update(JSON.stringify(template)).digest('hex').slice(0, 10);
  const updateRevision = `${name}-${hash}`;
  const pods = kubelet.names().filter(pod => ordinalOf(set, pod) >= 0);
  for (const pod of pods) if (ordinalOf(set, pod) >= replicas) kubelet.delete(pod);
  const hasAccount = namespace.find('ServiceAccount', template.spec.serviceAccountName) !== undefined;
  for (let ordinal = 0; hasAccount && ordinal < replicas; ordinal++) {
    const pod = `${name}-${ordinal}`;
    if (pods.includes(pod)) continue;
    const labels = { ...template.metadata.labels, 'controller-revision-hash': updateRevision };
    kubelet.start({ name: pod, uid: newUid(), labels, hostname: hostnameOf(set, pod) });
  }
  const status = { observedGeneration: generation, updateRevision, replicas: podsOf(set, kubelet).length };
  namespace.setStatus(set, status);
}

function podsOf(set: StatefulSet, kubelet: SimulatedKubelet): readonly string[] {
  return kubelet.names().filter(pod => ordinalOf(set, pod) >= 0);
}

/** -1 for a pod of another StatefulSet. */
function ordinalOf({ metadata }: StatefulSet, pod: string): number {
  const ordinal = pod.startsWith(`${metadata.name}-`) ? pod.slice(metadata.name.length + 1) : '';
  return /^\d+$/.test(ordinal) ? Number(ordinal) : -1;
}

/** TS_HOSTNAME of the container meshd, in which the name of the pod is replaced as the kubelet does. */
function hostnameOf({ spec }: StatefulSet, pod: string): string {
  const meshd = spec.template.spec.containers.find(({ name }) => name === 'meshd');
  const { value = '' } = meshd?.env.find(({ name }) => name === 'TS_HOSTNAME') ?? {};
  return value.replaceAll('$(POD_NAME)', pod);
}
