import type { Kinds } from '../../api/generated/types.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { keyOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Ref, RouteKind } from '../../api/key.ts';
import { relayName, TRUST } from '../../api/names.ts';
import { meshBackendsOf, tailnetsOf } from '../../api/objects/references.ts';
import type { CaRef, TrustedCa } from '../../api/trust.ts';
import { byNamespace } from '../resources.ts';
import type { AnyIndex, Index, ReadObjects } from '../resources.ts';
import { targetedRoutes } from '../../traffic/policy/route-policy.ts';
import { SELECTING, targetKeys } from '../../traffic/policy/traffic-policies.ts';
import { targetsOf } from '../../traffic/gateway-settings.ts';
import { relaysIn } from '../../traffic/endpoints/relays.ts';
import type { ReadCaBundle } from '../../traffic/upstream-tls.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { cachedTrust, caInConfigMap } from '../../traffic/trusted-ca.ts';
import { attachmentIndexes, attachmentResourcesFrom } from './attachments.ts';

/** MeshTailnets by their domain, which only one of them may have. */
export const tailnetsByDomain: Index<'MeshTailnet'> = {
  name: 'MeshTailnet by domain',
  kind: 'MeshTailnet',
  valuesOf: tailnetsOf,
};

/** MeshBindings by the keys of the Gateways that they target. */
export const bindingsByGateway: Index<'MeshBinding'> = {
  name: 'MeshBinding by Gateway',
  kind: 'MeshBinding',
  valuesOf: targetsOf,
};

/** MeshGateways by the keys of the Gateways that they target. */
export const meshGatewaysByGateway: Index<'MeshGateway'> = {
  name: 'MeshGateway by Gateway',
  kind: 'MeshGateway',
  valuesOf: targetsOf,
};

/** MeshRoutePolicies by the keys of the routes that they target. */
export const policiesByRoute: Index<'MeshRoutePolicy'> = {
  name: 'MeshRoutePolicy by route',
  kind: 'MeshRoutePolicy',
  valuesOf: targetedRoutes,
};

/** BackendTrafficPolicies by the keys of the objects that they name, and those that select objects under one value. */
const trafficPoliciesByTarget: Index<'BackendTrafficPolicy'> = {
  name: 'BackendTrafficPolicy by target',
  kind: 'BackendTrafficPolicy',
  valuesOf: targetKeys,
};

const slicesByService: Index<'EndpointSlice'> = {
  name: 'EndpointSlice by Service',
  kind: 'EndpointSlice',
  valuesOf: ({ metadata: { namespace = '' }, service: name }) => [
    keyOf({ kind: 'Service', namespace, name }),
  ],
};

const meshRoutesByNamespace = ROUTE_KINDS.map(<K extends RouteKind>(kind: K): Index<K> => ({
  name: `${kind} with MeshEndpoints by namespace`,
  group: 'routes with MeshEndpoints by namespace',
  kind,
  valuesOf: route => (meshBackendsOf(route).length > 0 ? [route.metadata.namespace ?? ''] : []),
}));

/** The namespaces that have routes with MeshEndpoints among their backends, unordered. */
export function namespacesOfMeshRoutes(read: ReadObjects): ReadonlySet<string> {
  return new Set(meshRoutesByNamespace.flatMap(index => read.values(index)));
}

/** The indexes that the reads of traffic need. */
export const trafficIndexes: readonly AnyIndex[] = [
  tailnetsByDomain,
  bindingsByGateway,
  meshGatewaysByGateway,
  policiesByRoute,
  trafficPoliciesByTarget,
  slicesByService,
  ...(meshRoutesByNamespace as AnyIndex[]),
  ...attachmentIndexes,
];

type TrafficResourcesOptions = Pick<
  TrafficResources,
  'readsBackends' | 'readsServices' | 'caBundle' | 'trusted' | 'gatewaySettings' | 'routePolicies' | 'guard'
> & {
  /** The namespace of the mesh pods; undefined where EndpointSlices are not read. */
  readonly podNamespace: string | undefined;
};

/** Reads TrafficResources through the indexes. */
export function trafficResourcesFrom(
  read: ReadObjects,
  { podNamespace: namespace, ...options }: TrafficResourcesOptions,
): TrafficResources {
  const { readsBackends, readsServices } = options;
  const slicesOf = (service: Ref<'Service'>) => read.find(slicesByService, keyOf(service));
  return {
    route: ref => read.get(ref),
    meshRoutesIn: namespace =>
      meshRoutesByNamespace.flatMap((index): readonly Route[] => read.find(index, namespace)),
    meshEndpoints: ref => read.get(ref),
    tailnets: domain => read.find(tailnetsByDomain, domain),
    grants: namespace => read.find(byNamespace('ReferenceGrant'), namespace),
    backendTlsPolicies: namespace => read.find(byNamespace('BackendTLSPolicy'), namespace),
    gatewayClass: name => read.get({ kind: 'GatewayClass', namespace: '', name }),
    trafficPolicies: target =>
      [keyOf(target), SELECTING].flatMap(value => read.find(trafficPoliciesByTarget, value)),
    envoyProxy: ref => read.get(ref),
    service: ref => (readsServices ? read.get(ref) : undefined),
    endpointSlices: service => (readsBackends ? slicesOf(service) : []),
    relays: tailnet =>
      namespace === undefined
        ? undefined
        : relaysIn(slicesOf({ kind: 'Service', namespace, name: relayName(tailnet) })),
    backend: ref => (readsBackends ? read.get(ref) : undefined),
    ...attachmentResourcesFrom(read),
    ...options,
  };
}

/** Where the certificates of caRefs are. */
export type TrustOptions = {
  /**
   * The namespace of the ConfigMap `mesh-trust`, which has the certificates of all ConfigMaps that tls.caRef names;
   * undefined where these are read themselves.
   */
  readonly trustNamespace: string | undefined;
  readonly publishedTrust: ReturnType<typeof cachedTrust>;
  readonly caBundle: ReadCaBundle;
};

/** Reads the certificates of a caRef. */
export function caOf(
  ref: CaRef,
  read: ReadObjects,
  { trustNamespace, publishedTrust, caBundle }: TrustOptions,
): TrustedCa {
  const configMap = (namespace: string, name: string) => read.get({ kind: 'ConfigMap', namespace, name });
  return trustNamespace === undefined
    ? caInConfigMap(configMap(ref.namespace, ref.name), ref, caBundle)
    : publishedTrust(configMap(trustNamespace, TRUST.configMap), ref);
}

/**
 * The MeshBinding that targets a Gateway. The operator's has the name of its Gateway; of others, the first by name counts, in
 * all replicas.
 */
export function bindingOf(gateway: Ref<'Gateway'>, read: ReadObjects): Kinds['MeshBinding'] | undefined {
  const found = read.find(bindingsByGateway, keyOf(gateway));
  const [first] = [...found].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return found.find(({ metadata }) => metadata.name === gateway.name) ?? first;
}
