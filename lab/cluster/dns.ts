import type { KubeObject } from '../kube/object.ts';

const NAME = 'system:coredns';
const RBAC = 'rbac.authorization.k8s.io';

/** The access of CoreDNS. */
export function dnsAccess(): readonly KubeObject[] {
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: NAME },
      rules: [
        {
          apiGroups: [''],
          resources: ['services', 'pods', 'namespaces', 'endpoints'],
          verbs: ['list', 'watch'],
        },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: NAME },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: NAME },
      subjects: [{ apiGroup: RBAC, kind: 'User', name: NAME }],
    },
  ];
}
