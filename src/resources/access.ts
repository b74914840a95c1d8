import type { AccessRule } from '../api/access.ts';

/** What telling events takes in a cluster: to make one, and to count it when the same happens again. */
export const eventAccess: readonly AccessRule[] = [
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
];

/** What holding a lease takes in its namespace; to make something can never be limited to a name. */
export function leaseAccess(name: string): readonly AccessRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...leases, verbs: ['create'] },
    { ...leases, resourceNames: [name], verbs: ['get', 'patch'] },
  ];
}
