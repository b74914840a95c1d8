import type { AccessRule } from '../api/access.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { trafficAccess } from '../traffic/access.ts';

/** What the controller may do in a cluster: read what clusters are made from, and own the MeshBindings. */
export const access: readonly AccessRule[] = [
  ...trafficAccess,
  { apiGroups: [GROUP], resources: ['meshbindings'], verbs: ['create', 'patch', 'delete'] },
];
