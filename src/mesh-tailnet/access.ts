import type { Access, AccessRule } from '../api/access.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { COMPONENTS } from '../api/names.ts';

/** Server-side apply is a patch, which creates the object where it does not exist. */
const APPLY_AND_DELETE: AccessRule['verbs'] = ['get', 'create', 'patch', 'delete'];

/**
 * What the controller may do in a cluster: read MeshTailnets, write their status and finalizers; in its namespace, read
 * ConfigMaps with CAs, create tokens of its own ServiceAccount for workload identity, and run the pools of mesh pods. It
 * never lists Secrets. A Role of a pool grants rights on Secrets and on the ConfigMap of its relays, which the operator must
 * hold to grant them.
 */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get', 'list', 'watch'] },
    {
      apiGroups: [GROUP],
      resources: ['meshtailnets'],
      verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    },
    { apiGroups: [GROUP], resources: ['meshtailnets/status'], verbs: ['patch'] },
  ],
  own: [
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create', 'patch', 'update', 'delete'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'delete'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: [...APPLY_AND_DELETE, 'list', 'watch'] },
    { apiGroups: [''], resources: ['serviceaccounts', 'services'], verbs: APPLY_AND_DELETE },
    { apiGroups: ['apps'], resources: ['statefulsets'], verbs: APPLY_AND_DELETE },
    { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: APPLY_AND_DELETE },
    {
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['roles', 'rolebindings'],
      verbs: APPLY_AND_DELETE,
    },
    {
      apiGroups: [''],
      resources: ['serviceaccounts/token'],
      resourceNames: [COMPONENTS.operator],
      verbs: ['create'],
    },
  ],
};
