import { GROUP } from '../../../../src/api/generated/kinds.ts';
import type { AccessRule } from '../../../../src/api/access.ts';
import { REPORT } from '../../../../src/api/names.ts';
import type { KubeClient } from '../../../../lab/kube/client.ts';

/** An action that RBAC allows or denies; the last field is a namespace, or undefined for the whole cluster. */
export type Right = readonly [verb: string, group: string, resource: string, where: string, name?: string];

/** The text of a right. */
export function wordsOf([verb, group, resource, where, name = '']: Right): string {
  return `${verb} ${group}/${resource} ${name} in "${where}"`;
}

/** Whether a client may do something, by a SelfSubjectAccessReview. */
export async function mayDo(client: KubeClient, right: Right): Promise<boolean> {
  const [verb, group, whole, namespace, name] = right;
  const [resource, subresource] = whole.split('/');
  const resourceAttributes = { verb, group, resource, subresource, namespace, name };
  const { body } = await client.request('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: { resourceAttributes },
  });
  return (body as { readonly status: { readonly allowed: boolean } }).status.allowed;
}

/** Each single right of a rule, in a namespace or in the whole cluster. */
export function rightsIn(rules: readonly AccessRule[], where: string): readonly Right[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs }) =>
    apiGroups.flatMap(group =>
      resources.flatMap(resource =>
        resourceNames.flatMap(name =>
          verbs.map((verb): Right =>
            name === undefined ? [verb, group, resource, where] : [verb, group, resource, where, name],
          ),
        ),
      ),
    ),
  );
}

const RBAC = 'rbac.authorization.k8s.io';
const GATEWAY = 'gateway.networking.k8s.io';

const ELSEWHERE: readonly Right[] = [
  ['get', '', 'secrets', 'default'],
  ['list', '', 'secrets', ''],
  ['watch', '', 'secrets', ''],
  ['create', '', 'secrets', 'default'],
  ['list', '', 'configmaps', ''],
  ['patch', '', 'configmaps', 'envoy-gateway-system'],
  ['list', '', 'pods', ''],
  ['delete', '', 'pods', 'default'],
  ['create', 'apps', 'statefulsets', 'default'],
  ['create', RBAC, 'roles', 'default'],
  ['patch', '', 'namespaces', ''],
  ['delete', '', 'namespaces', ''],
  // What is watched is never read by name.
  ['get', '', 'namespaces', 'default'],
  ['get', GATEWAY, 'gateways', 'default'],
  ['get', GATEWAY, 'httproutes', 'default'],
  ['get', GATEWAY, 'referencegrants', 'default'],
  ['get', '', 'nodes/proxy', ''],
  ['patch', '', 'nodes', ''],
  ['create', RBAC, 'clusterrolebindings', ''],
  ['bind', RBAC, 'clusterroles', ''],
  ['escalate', RBAC, 'clusterroles', ''],
  ['impersonate', '', 'users', ''],
  ['create', GATEWAY, 'httproutes', 'default'],
  ['patch', GATEWAY, 'httproutes', 'default'],
  ['patch', GATEWAY, 'httproutes/status', 'default'],
  ['delete', GATEWAY, 'gateways', 'default'],
  ['patch', GATEWAY, 'gateways/status', 'default'],
  ['patch', GROUP, 'meshendpoints', 'default'],
  ['delete', GROUP, 'meshendpoints', 'default'],
  ['deletecollection', GROUP, 'meshbindings', 'default'],
  ['get', 'coordination.k8s.io', 'leases', 'kube-node-lease'],
  ['patch', 'apiextensions.k8s.io', 'customresourcedefinitions', ''],
  ['create', 'admissionregistration.k8s.io', 'mutatingwebhookconfigurations', ''],
  ['get', 'events.k8s.io', 'events', 'default'],
  ['*', '*', '*', ''],
];

/** What none of our processes may do, even if it is compromised; `own` is the namespace in which it runs. */
export function forbiddenToAll(own: string): readonly Right[] {
  return [
    ...ELSEWHERE,
    ['list', '', 'secrets', own],
    ['watch', '', 'secrets', own],
    ['get', '', 'pods', own],
    ['create', '', 'pods', own],
    ['create', '', 'pods/exec', own],
    ['create', '', 'pods/portforward', own],
    ['get', '', 'pods/log', own],
    ['create', '', 'serviceaccounts/token', own],
    ['get', '', 'serviceaccounts', own],
    ['get', RBAC, 'roles', own],
    ['get', RBAC, 'rolebindings', own],
    ['get', 'policy', 'poddisruptionbudgets', own],
    ['escalate', RBAC, 'roles', own],
    ['bind', RBAC, 'roles', own],
    ['impersonate', '', 'serviceaccounts', own],
    ['list', 'coordination.k8s.io', 'leases', own],
    ['delete', 'coordination.k8s.io', 'leases', own],
    ['patch', 'coordination.k8s.io', 'leases', own, 'another'],
    ['get', 'apps', 'deployments', own],
    ['patch', 'apps', 'deployments', own],
    ['create', 'apps', 'daemonsets', own],
    ['create', 'batch', 'jobs', own],
    ['delete', 'networking.k8s.io', 'networkpolicies', own],
  ];
}

/** What the extension server may not do either: it writes nothing. */
export const FORBIDDEN_TO_READERS: readonly Right[] = [
  ['get', GROUP, 'meshtailnets', ''],
  ['get', GROUP, 'meshbindings', 'default'],
  ['get', '', 'services', 'default'],
  ['get', 'discovery.k8s.io', 'endpointslices', 'default'],
  ['create', GROUP, 'meshtailnets', ''],
  ['patch', GROUP, 'meshtailnets', ''],
  ['delete', GROUP, 'meshtailnets', ''],
  ['create', GROUP, 'meshendpoints', 'default'],
  ['create', GROUP, 'meshbindings', 'default'],
  ['patch', GROUP, 'meshbindings', 'default'],
  ['delete', GROUP, 'meshbindings', 'default'],
  ['patch', GROUP, 'meshbindings/status', 'default'],
  ['patch', GROUP, 'meshendpoints/status', 'default'],
  [REPORT, GROUP, 'meshendpoints/status', ''],
  ['create', 'coordination.k8s.io', 'leases', 'mesh-system'],
  ['get', '', 'secrets', 'mesh-system'],
  ['create', '', 'configmaps', 'mesh-system'],
  ['get', '', 'configmaps', 'default'],
  ['list', '', 'pods', 'mesh-system'],
  ['delete', '', 'pods', 'mesh-system'],
  ['patch', '', 'serviceaccounts', 'mesh-system'],
  ['patch', '', 'services', 'mesh-system'],
  ['create', RBAC, 'rolebindings', 'mesh-system'],
  ['patch', 'apps', 'statefulsets', 'mesh-system'],
  ['create', 'events.k8s.io', 'events', 'default'],
];

/** What Envoy Gateway may not do with our kinds; its other rights come from its chart. */
export const FORBIDDEN_TO_ENVOY_GATEWAY: readonly Right[] = [
  ['create', GROUP, 'meshbindings', 'default'],
  ['patch', GROUP, 'meshbindings', 'default'],
  ['update', GROUP, 'meshbindings', 'default'],
  ['delete', GROUP, 'meshbindings', 'default'],
  ['create', GROUP, 'meshendpoints', 'default'],
  ['update', GROUP, 'meshendpoints', 'default'],
  ['update', GROUP, 'meshendpoints/status', 'default'],
  [REPORT, GROUP, 'meshendpoints/status', ''],
  ['get', GROUP, 'meshtailnets', ''],
  ['list', GROUP, 'meshtailnets', ''],
];

/** What Envoy Gateway does with our kinds. */
export const NEEDED_BY_ENVOY_GATEWAY: readonly Right[] = [
  ...['meshbindings', 'meshendpoints'].flatMap(resource =>
    ['get', 'list', 'watch'].map((verb): Right => [verb, GROUP, resource, '']),
  ),
  ['update', GROUP, 'meshbindings/status', ''],
];
