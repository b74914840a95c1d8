import type { Access } from '../api/access.ts';
import { trafficAccess } from '../traffic/access.ts';

/** What the controller may do in a cluster: read what decides traffic and, in its namespace, mesh pods; and write the ConfigMaps of relays. */
export const access: Access = {
  cluster: trafficAccess,
  own: [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'create', 'patch'] },
    { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
  ],
};
