import type { Access } from '../api/access.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { trafficAccess } from '../traffic/access.ts';

/** What the controller may do in a cluster: read what decides traffic, and write the status of MeshEndpoints. */
export const access: Access = {
  cluster: [...trafficAccess, { apiGroups: [GROUP], resources: ['meshendpoints/status'], verbs: ['patch'] }],
  own: [],
};
