import type { Access, AccessRule } from '../api/access.ts';
import { ENVOY_GATEWAY_GROUP } from '../api/backends.ts';
import { GATEWAY_GROUP } from '../api/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { BACKEND_KINDS, ROUTE_KINDS } from '../api/key.ts';
import type { ResourceKind } from '../api/key.ts';

/** The kinds from which follows how traffic goes. */
export const trafficKinds: readonly ResourceKind[] = [
  ...ROUTE_KINDS,
  'Gateway',
  'MeshBinding',
  'MeshEndpoints',
  'MeshTailnet',
  'Namespace',
  'ReferenceGrant',
];

/** The kinds from which follows where requests to other backends of a rule go, for whoever sends these. */
export const servingKinds: readonly ResourceKind[] = [...trafficKinds, ...BACKEND_KINDS];

/** What it takes in a cluster to read the kinds from which follows how traffic goes. */
export const trafficAccess: readonly AccessRule[] = [
  {
    apiGroups: [GATEWAY_GROUP],
    resources: [
      'gateways',
      'httproutes',
      'grpcroutes',
      'tlsroutes',
      'tcproutes',
      'udproutes',
      'referencegrants',
    ],
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
  {
    apiGroups: [GROUP],
    resources: ['meshbindings', 'meshendpoints', 'meshtailnets'],
    verbs: ['get', 'list', 'watch'],
  },
];

/** What the extension server may do in a cluster: read the kinds that it serves endpoints from. */
export const extensionServerAccess: Access = {
  cluster: [
    ...trafficAccess,
    { apiGroups: [''], resources: ['services'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [ENVOY_GATEWAY_GROUP], resources: ['backends'], verbs: ['get', 'list', 'watch'] },
  ],
  own: [],
};
