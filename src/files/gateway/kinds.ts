import { ENVOY_GATEWAY_GROUP } from '../../api/objects/backends.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import { API_VERSION, GROUP } from '../../api/generated/kinds.ts';
import { groupOf } from '../manifests.ts';

/** The version in which a kind is written for Envoy Gateway, and its scope. */
export type GeneratedKind = { readonly apiVersion: string; readonly scope: 'Namespaced' | 'Cluster' };

function namespaced(
  apiVersion: string,
  kinds: readonly string[],
): readonly (readonly [string, GeneratedKind])[] {
  return kinds.map(kind => [`${groupOf({ apiVersion })}/${kind}`, { apiVersion, scope: 'Namespaced' }]);
}

/**
 * All kinds that Envoy Gateway reads from files, by group and kind, each in the version in which it stores them: it
 * crashes on another version of an L4 route, and loses a ReferenceGrant of another version after its first read.
 */
const KINDS: ReadonlyMap<string, GeneratedKind> = new Map([
  [`${GATEWAY_GROUP}/GatewayClass`, { apiVersion: `${GATEWAY_GROUP}/v1`, scope: 'Cluster' }],
  ...namespaced(`${GATEWAY_GROUP}/v1`, [
    'Gateway',
    'HTTPRoute',
    'GRPCRoute',
    'TLSRoute',
    'TCPRoute',
    'UDPRoute',
    'BackendTLSPolicy',
  ]),
  ...namespaced(`${GATEWAY_GROUP}/v1beta1`, ['ReferenceGrant']),
  ...namespaced(`${ENVOY_GATEWAY_GROUP}/v1alpha1`, [
    'EnvoyProxy',
    'EnvoyPatchPolicy',
    'ClientTrafficPolicy',
    'BackendTrafficPolicy',
    'SecurityPolicy',
    'EnvoyExtensionPolicy',
    'HTTPRouteFilter',
    'Backend',
  ]),
  ...namespaced('v1', ['Secret', 'ConfigMap']),
  ...namespaced(API_VERSION, ['MeshEndpoints', 'MeshBinding']),
]);

/** Whether a kind is written for Envoy Gateway, and why not. */
export type KindSupport =
  | { readonly is: 'written'; readonly as: GeneratedKind }
  /** Only mesh-gateway reads it. */
  | { readonly is: 'ours' }
  | { readonly is: 'omitted'; readonly why: string };

/** Whether and how the objects of a kind are written. */
export function kindSupport(group: string, kind: string): KindSupport {
  const as = KINDS.get(`${group}/${kind}`);
  if (as) return { is: 'written', as };
  if (group === GROUP || (group === '' && kind === 'Namespace')) return { is: 'ours' };
  const isService = ['/Service', 'discovery.k8s.io/EndpointSlice'].includes(`${group}/${kind}`);
  return {
    is: 'omitted',
    why: isService ? NO_SERVICES : 'Envoy Gateway does not read this kind from files',
  };
}

const NO_SERVICES =
  'Envoy Gateway does not use Services from files: write a Backend of gateway.envoyproxy.io and refer to that';
