import type { AccessRule } from '../api/access.ts';
import { GATEWAY_GROUP } from '../api/gateway-api.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { ROUTE_KINDS } from '../api/key.ts';
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

/** What it takes in a cluster to read them. */
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
