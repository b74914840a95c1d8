import type { Access } from '../api/access.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { COMPONENTS, OAUTH_SECRET } from '../api/names.ts';

/**
 * What the controller may do in a cluster: read MeshTailnets and write their status; in its namespace, read the Secret of
 * the contract and ConfigMaps with CAs, and create tokens of its own ServiceAccount for workload identity.
 */
export const access: Access = {
  cluster: [
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get', 'list', 'watch'] },
    {
      ...{ apiGroups: [GROUP], resources: ['meshtailnets'] },
      verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
    },
    { apiGroups: [GROUP], resources: ['meshtailnets/status'], verbs: ['patch'] },
  ],
  own: [
    { apiGroups: [''], resources: ['secrets'], resourceNames: [OAUTH_SECRET], verbs: ['get'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
    {
      ...{ apiGroups: [''], resources: ['serviceaccounts/token'] },
      ...{ resourceNames: [COMPONENTS.operator], verbs: ['create'] },
    },
  ],
};
