import type { AccessRule } from '../api/access.ts';

/** The permissions to record events: create them, and patch their count. */
export const eventAccess: readonly AccessRule[] = [
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
];

/** The permissions to watch the addresses of pods. RBAC cannot limit them to labels. */
export const podAddressesAccess: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
];

/** The permissions for a Lease in its namespace. RBAC cannot limit `create` to a name. */
export function leaseAccess(name: string): readonly AccessRule[] {
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    { ...leases, verbs: ['create'] },
    { ...leases, resourceNames: [name], verbs: ['get', 'patch'] },
  ];
}
