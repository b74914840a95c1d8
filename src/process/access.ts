import type { Access } from '../api/access.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { COMPONENTS } from '../api/names.ts';
import { servingAccess } from '../traffic/access.ts';
import { access as bindingAccess } from '../mesh-binding/access.ts';
import { eventAccess, leaseAccess } from '../resources/access.ts';

/** All that the operator may do. */
export const operatorAccess: Access = {
  cluster: [
    ...bindingAccess,
    ...eventAccess,
    // Promised to users; the operator itself makes none yet.
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['create'] },
  ],
  own: leaseAccess(COMPONENTS.operator),
};

/** All that the extension server may do: it writes nothing. */
export const extensionServerAccess: Access = { cluster: servingAccess, own: [] };
