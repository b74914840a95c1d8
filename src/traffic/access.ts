import { watchAccess } from '../api/access.ts';
import type { ProcessAccess } from '../api/access.ts';
import { GROUP } from '../api/generated/kinds.ts';
import { BACKEND_KINDS, ROUTE_KINDS } from '../api/key.ts';
import type { ResourceKind } from '../api/key.ts';

/** The kinds that the operator and the extension server watch to compute the settings of Envoy clusters. */
export const trafficKinds: readonly ResourceKind[] = [
  ...ROUTE_KINDS,
  'BackendTLSPolicy',
  'ConfigMap',
  'Gateway',
  'ListenerSet',
  'MeshBinding',
  'MeshEndpoints',
  'MeshRoutePolicy',
  'MeshTailnet',
  'Namespace',
  'ReferenceGrant',
];

/** The kinds that decide whether Envoy Gateway uses the addresses of Services, and not those of their endpoints. */
export const routingKinds: readonly ResourceKind[] = ['BackendTrafficPolicy', 'EnvoyProxy', 'GatewayClass'];

/**
 * The kinds that the operator watches for it: the extension server reads what MeshGateways decide in MeshBindings. Of Services the
 * operator reads those that policies name.
 */
export const operatorTrafficKinds: readonly ResourceKind[] = [...trafficKinds, 'MeshGateway', 'Service'];

/** The kinds that the extension server watches: also Services, EndpointSlices and Backends, which it serves in mixed rules. */
export const servingKinds: readonly ResourceKind[] = [...trafficKinds, ...BACKEND_KINDS];

const watched = watchAccess(servingKinds);

/** The rights of the extension server: to watch `servingKinds`. */
export const extensionServerAccess: ProcessAccess = {
  ...watched,
  // It reads them by its watch.
  unused: [{ apiGroups: [GROUP], resources: ['meshendpoints'], verbs: ['get'] }],
};
