import type { WorkloadKind, WorkloadObject } from '../../src/workloads/workloads.ts';

type Fields = Readonly<Record<string, unknown>>;

const container = { name: 'main', image: 'example.com/none' };

/** A pod template of something that never runs, because there are no replicas of it. */
function podsOf(name: string): Fields {
  const labels = { app: name };
  return {
    selector: { matchLabels: labels },
    template: { metadata: { labels }, spec: { containers: [container] } },
  };
}

const RBAC = 'rbac.authorization.k8s.io';

/** What a valid object of each kind says beside its metadata. */
const BODIES: Readonly<Record<WorkloadKind, (name: string) => readonly [string, Fields]>> = {
  ConfigMap: () => ['v1', { data: { color: 'blue' } }],
  Deployment: name => ['apps/v1', { spec: { replicas: 0, ...podsOf(name) } }],
  PodDisruptionBudget: name => [
    'policy/v1',
    { spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } } },
  ],
  Role: () => [
    `${RBAC}/v1`,
    { rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['a'], verbs: ['get'] }] },
  ],
  RoleBinding: name => [
    `${RBAC}/v1`,
    { roleRef: { apiGroup: RBAC, kind: 'Role', name }, subjects: [{ kind: 'ServiceAccount', name }] },
  ],
  Service: name => ['v1', { spec: { selector: { app: name }, ports: [{ port: 80, protocol: 'TCP' }] } }],
  ServiceAccount: () => ['v1', { automountServiceAccountToken: false }],
  StatefulSet: name => ['apps/v1', { spec: { replicas: 0, serviceName: name, ...podsOf(name) } }],
};

/** A valid object of a kind, with some of what it says replaced. */
export function workload(
  kind: WorkloadKind,
  place: string,
  fields: Fields = {},
  labels = {},
): WorkloadObject {
  const [namespace = '', name = ''] = place.split('/');
  const [apiVersion, body] = BODIES[kind](name);
  const metadata = { namespace, name, labels: { app: name, ...labels } };
  return { apiVersion, kind, metadata, ...body, ...fields };
}

/** A valid object of a kind with some of its spec replaced. */
export function workloadWith(kind: WorkloadKind, place: string, spec: Fields): WorkloadObject {
  const object = workload(kind, place);
  return { ...object, spec: { ...(object['spec'] as Fields), ...spec } };
}
