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
    verbs: ['get', 'list', 'watch'],
  },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
  {
    apiGroups: [GROUP],
    resources: ['meshbindings', 'meshendpoints', 'meshtailnets'],
    verbs: ['get', 'list', 'watch'],
  },
];

/** The right to watch the ConfigMap `mesh-trust`, in the namespace of mesh-gateway. */
export const trustAccess: AccessRule = {
  apiGroups: [''],
  resources: ['configmaps'],
  resourceNames: [TRUST.configMap],
  verbs: ['list', 'watch'],
};

/** The rights of the extension server: to watch `servingKinds`. */
export const extensionServerAccess: Access = {
  cluster: [
    ...trafficAccess,
    { apiGroups: [''], resources: ['services'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [ENVOY_GATEWAY_GROUP], resources: ['backends'], verbs: ['get', 'list', 'watch'] },
  ],
  own: [trustAccess],
};
