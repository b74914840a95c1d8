import { GATEWAY_GROUP } from '../api/gateway-api.ts';
import { API_VERSION, GROUP } from '../api/generated/kinds.ts';

/** How a kind is written for Envoy Gateway, and where its objects live. */
export type GeneratedKind = { readonly apiVersion: string; readonly scope: 'Namespaced' | 'Cluster' };

const ENVOY_GATEWAY_GROUP = 'gateway.envoyproxy.io';

const V1: GeneratedKind = { apiVersion: `${GATEWAY_GROUP}/v1`, scope: 'Namespaced' };
const EXTENDED: GeneratedKind = { apiVersion: `${ENVOY_GATEWAY_GROUP}/v1alpha1`, scope: 'Namespaced' };
const CORE: GeneratedKind = { apiVersion: 'v1', scope: 'Namespaced' };
const OURS: GeneratedKind = { apiVersion: API_VERSION, scope: 'Namespaced' };

/**
 * All kinds that Envoy Gateway takes from files, by group and kind, each in the one version in which it keeps them: of
 * another version of an L4 route it dies, and a ReferenceGrant of another version it finds once and never again.
 */
const KINDS: Readonly<Record<string, Readonly<Record<string, GeneratedKind>>>> = {
  [GATEWAY_GROUP]: {
    GatewayClass: { ...V1, scope: 'Cluster' },
    Gateway: V1,
    HTTPRoute: V1,
    GRPCRoute: V1,
    TLSRoute: V1,
    TCPRoute: V1,
    UDPRoute: V1,
    BackendTLSPolicy: V1,
    ReferenceGrant: { ...V1, apiVersion: `${GATEWAY_GROUP}/v1beta1` },
  },
  [ENVOY_GATEWAY_GROUP]: {
    EnvoyProxy: EXTENDED,
    EnvoyPatchPolicy: EXTENDED,
    ClientTrafficPolicy: EXTENDED,
    BackendTrafficPolicy: EXTENDED,
    SecurityPolicy: EXTENDED,
    EnvoyExtensionPolicy: EXTENDED,
    HTTPRouteFilter: EXTENDED,
    Backend: EXTENDED,
  },
  '': { Secret: CORE, ConfigMap: CORE },
  [GROUP]: { MeshEndpoints: OURS, MeshBinding: OURS },
};

/** Whether a kind goes to Envoy Gateway, and why not. */
export type Fate =
  | { readonly is: 'written'; readonly as: GeneratedKind }
  /** It is for us alone, and nobody expects more. */
  | { readonly is: 'ours' }
  | { readonly is: 'left-out'; readonly why: string };

/** What becomes of the objects of a kind. */
export function fateOf(group: string, kind: string): Fate {
  const ofGroup = Object.hasOwn(KINDS, group) ? KINDS[group] : undefined;
  const as = ofGroup && Object.hasOwn(ofGroup, kind) ? ofGroup[kind] : undefined;
  if (as) return { is: 'written', as };
  if (group === GROUP || (group === '' && kind === 'Namespace')) return { is: 'ours' };
  return {
    is: 'left-out',
    why: WHY[`${group}/${kind}`] ?? 'Envoy Gateway does not read this kind from files',
  };
}

const NO_SERVICES =
  'Envoy Gateway does not use Services from files: write a Backend of gateway.envoyproxy.io and refer to that';

const WHY: Readonly<Partial<Record<string, string>>> = {
  '/Service': NO_SERVICES,
  'discovery.k8s.io/EndpointSlice': NO_SERVICES,
};
