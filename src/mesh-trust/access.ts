import type { Access } from '../api/access.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { trustAccess } from '../traffic/access.ts';

/**
 * What the controller may do in a cluster: read the ConfigMaps that tls.caRef names, in any namespace, and write the ConfigMap
 * `mesh-trust` of its own. RBAC cannot limit `create` to a name.
 */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
  ],
  own: [trustAccess, { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch'] }],
};
