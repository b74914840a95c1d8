import type { KubeObject } from '../../../lab/kube/object.ts';
import { isEqual } from '../../../src/api/json.ts';
import { areAmong, at, clusterScoped, listAt, podLabels, textsAt, workloads } from './parts.ts';
import { containerPolicies, podPolicies } from './pod-policies.ts';
import { ofKinds } from './policy.ts';
import type { Policy } from './policy.ts';

const ROLES = ['Role', 'ClusterRole'];
const BINDINGS = ['RoleBinding', 'ClusterRoleBinding'];
const RULE = ['rules', 0] as const;

/** For the certificates that MeshEndpoints refer to, in any namespace. */
const GET_CONFIG_MAPS = { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] };

/** Whether a ClusterRole is bound, or aggregated into one of Kubernetes' own. */
function isHadByAnybody({ name, labels }: KubeObject['metadata'], all: readonly KubeObject[]): boolean {
  const isBound = all.some(one => /Binding$/.test(one.kind) && at(one, 'roleRef', 'name') === name);
  return isBound || Object.keys(labels ?? {}).some(label => label.includes('/aggregate-to-'));
}

/** The policies of RBAC. */
const accessPolicies: readonly Policy[] = [
  ofKinds(ROLES, 'no role has a wildcard', role => !JSON.stringify(at(role, 'rules')).includes('*'), [
    [...RULE, 'verbs'],
    ['*'],
  ]),
  ofKinds(
    ROLES,
    'no role allows impersonation, or granting rights that the holder lacks',
    role => !/"(escalate|bind|impersonate)"/.test(JSON.stringify(at(role, 'rules'))),
    [[...RULE, 'verbs'], ['impersonate']],
  ),
  ofKinds(
    ['ClusterRole'],
    'no cluster-wide role reaches Secrets, pods or what creates them, and more of ConfigMaps than to get one by its name',
    (role, { metadata }, all) =>
      !isHadByAnybody(metadata, all) ||
      listAt(role, 'rules')
        .filter(rule => !isEqual(rule, GET_CONFIG_MAPS))
        .flatMap(rule => listAt(rule, 'resources').map(String))
        .every(
          name => !/^(secrets|configmaps|pods|nodes|deployments|statefulsets|daemonsets|jobs)\b/.test(name),
        ),
    [[...RULE, 'resources'], ['secrets']],
  ),
  ofKinds(
    BINDINGS,
    'every binding grants one of our roles to a service account of a process',
    (binding, _, all) =>
      listAt(binding, 'subjects').every(subject => at(subject, 'kind') === 'ServiceAccount') &&
      all.some(
        ({ kind, metadata }) =>
          kind === at(binding, 'roleRef', 'kind') && metadata.name === at(binding, 'roleRef', 'name'),
      ),
    [['roleRef', 'name'], 'cluster-admin'],
  ),
  ofKinds(
    ['ServiceAccount'],
    'no ServiceAccount mounts its token by default',
    account => at(account, 'automountServiceAccountToken') === false,
    [['automountServiceAccountToken']],
  ),
];

const VERSION_LABEL = 'app.kubernetes.io/version';

/** The policies of objects as a whole. */
const objectPolicies: readonly Policy[] = [
  ofKinds(
    ['Deployment'],
    'selectors hold nothing that changes from version to version, and choose the pods of their own Deployment',
    (_, object) => {
      const chosen = textsAt(object, 'spec', 'selector', 'matchLabels');
      const labels = ['app.kubernetes.io/instance', 'app.kubernetes.io/name'];
      return Object.keys(chosen).sort().join() === labels.join() && areAmong(chosen, podLabels(object));
    },
    [['spec', 'selector', 'matchLabels', VERSION_LABEL], '1.2.3'],
  ),
  ofKinds(
    ['Service', 'PodDisruptionBudget'],
    'every Service and every budget chooses the pods of exactly one Deployment',
    (object, _, all) => {
      const way = at(object, 'spec', 'selector', 'matchLabels') ? ['matchLabels'] : [];
      const labels = textsAt(object, 'spec', 'selector', ...way);
      return workloads(all).filter(one => areAmong(labels, podLabels(one))).length === 1;
    },
    [['spec', 'selector'], { 'app.kubernetes.io/instance': 'mesh-gateway' }],
  ),
  ofKinds(
    ['HorizontalPodAutoscaler'],
    'only an autoscaler sets the number of pods',
    (scaler, _, all) => {
      const scaled = workloads(all).filter(
        ({ metadata }) => metadata.name === at(scaler, 'spec', 'scaleTargetRef', 'name'),
      );
      return scaled.length === 1 && scaled.every(one => at(one, 'spec', 'replicas') === undefined);
    },
    [['spec', 'scaleTargetRef', 'name'], 'mesh-operator'],
  ),
  ofKinds(
    ['Deployment'],
    'no rollout removes a pod before another is ready',
    object => at(object, 'spec', 'strategy', 'rollingUpdate', 'maxUnavailable') === 0,
    [['spec', 'strategy', 'rollingUpdate', 'maxUnavailable'], '25%'],
  ),
  ofKinds(
    [],
    'every object has labels for the product and its version',
    (_, { kind, metadata: { labels = {} } }) =>
      kind === 'CustomResourceDefinition' ||
      (labels['app.kubernetes.io/managed-by'] === 'mesh-gateway' && labels[VERSION_LABEL] === '1.2.3'),
    [['metadata', 'labels']],
  ),
  ofKinds(
    [],
    'every object names its namespace if its kind has one, and none otherwise',
    (_, { kind, metadata }) => clusterScoped.includes(kind) === (metadata.namespace === undefined),
    [['metadata', 'namespace']],
  ),
  ofKinds(
    ['Namespace'],
    'the namespace enforces the level restricted of Pod Security',
    object => at(object, 'metadata', 'labels', 'pod-security.kubernetes.io/enforce') === 'restricted',
    [['metadata', 'labels', 'pod-security.kubernetes.io/enforce'], 'baseline'],
  ),
  ofKinds(
    ['NetworkPolicy'],
    'a network policy never admits all peers, and names its ports',
    object =>
      listAt(object, 'spec', 'ingress').every(
        rule =>
          listAt(rule, 'ports').length > 0 &&
          listAt(rule, 'from').length > 0 &&
          listAt(rule, 'from').every(peer => /"matchLabels":\{"/.test(JSON.stringify(peer))),
      ),
    [['spec', 'ingress', 0, 'from'], [{ namespaceSelector: {} }]],
  ),
];

/** All policies. */
export const policies: readonly Policy[] = [
  ...podPolicies,
  ...containerPolicies,
  ...accessPolicies,
  ...objectPolicies,
];
