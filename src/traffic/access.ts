import type { Access, AccessRule } from '../api/access.ts';
import { ENVOY_GATEWAY_GROUP } from '../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { TRUST } from '../api/names.ts';
import { BACKEND_KINDS, ROUTE_KINDS } from '../api/key.ts';
import type { ResourceKind } from '../api/key.ts';

/** The kinds that the operator watches to compute the settings of Envoy clusters. */
export const trafficKinds: readonly ResourceKind[] = [
  ...ROUTE_KINDS,
  'ConfigMap',
  'Gateway',
  'MeshBinding',
  'MeshEndpoints',
  'MeshTailnet',
  'Namespace',
  'ReferenceGrant',
];

/** The kinds that the extension server watches: also Services, EndpointSlices and Backends, which it serves in mixed rules. */
export const servingKinds: readonly ResourceKind[] = [...trafficKinds, ...BACKEND_KINDS];

/** All that watching a kind needs. */
const WATCH: AccessRule['verbs'] = ['list', 'watch'];

/** The rights to watch `trafficKinds`. */
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
    verbs: WATCH,
  },
  { apiGroups: [''], resources: ['namespaces'], verbs: WATCH },
  {
    apiGroups: [GROUP],
    resources: ['meshbindings', 'meshendpoints', 'meshtailnets'],
    verbs: WATCH,
  },
];

/** The right to watch the ConfigMap `mesh-trust`, in the namespace of mesh-gateway. */
export const trustAccess: AccessRule = {
  apiGroups: [''],
  resources: ['configmaps'],
  resourceNames: [TRUST.configMap],
  verbs: WATCH,
};

/** The rights of the extension server: to watch `servingKinds`. */
export const extensionServerAccess: Access = {
  cluster: [
    ...trafficAccess,
    { apiGroups: [''], resources: ['services'], verbs: WATCH },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: WATCH },
    { apiGroups: [ENVOY_GATEWAY_GROUP], resources: ['backends'], verbs: WATCH },
    // Part of the contract, though it reads them by its watch.
    { apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get'] },
  ],
  own: [trustAccess],
};
