import type { Kinds } from '../api/generated/types.ts';
import type { Route } from '../api/objects/gateway-api.ts';
import { keyOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref, RouteKind } from '../api/key.ts';
import { relayName, TRUST } from '../api/names.ts';
import { gatewaysOf, refTo, tailnetsOf } from '../api/objects/references.ts';
import type { Resource } from '../api/objects/resource.ts';
import { byNamespace } from '../store/resources.ts';
import type { AnyIndex, Index, ReadResources } from '../store/resources.ts';
import { DEFAULT_GUARD } from '../traffic/address-guard.ts';
import type { AddressGuard } from '../traffic/address-guard.ts';
import { relaysIn } from '../traffic/endpoints/relays.ts';
import { readCaBundle } from '../traffic/upstream-tls.ts';
import type { ReadCaBundle } from '../traffic/upstream-tls.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import { cachedTrust, caInConfigMap } from '../traffic/trusted-ca.ts';

const tailnets: Index<'MeshTailnet'> = {
  name: 'extension: MeshTailnet by domain',
  kind: 'MeshTailnet',
  valuesOf: tailnetsOf,
};

const bindings: Index<'MeshBinding'> = {
  name: 'extension: MeshBinding by Gateway',
  kind: 'MeshBinding',
  valuesOf: ({ metadata: { namespace = '' }, spec }) =>
    spec.targetRefs.map(({ name }) => keyOf({ kind: 'Gateway', namespace, name })),
};

const slicesByService: Index<'EndpointSlice'> = {
  name: 'extension: EndpointSlice by Service',
  kind: 'EndpointSlice',
  valuesOf: ({ metadata: { namespace = '' }, service: name }) => [
    keyOf({ kind: 'Service', namespace, name }),
  ],
};

function routesByGateway<K extends RouteKind>(kind: K): Index<K> {
  return { name: `extension: ${kind} by Gateway`, kind, valuesOf: route => gatewaysOf(route) };
}

const gatewaysByClass: Index<'Gateway'> = {
  name: 'extension: Gateway by class',
  kind: 'Gateway',
  valuesOf: ({ gatewayClassName }) => [gatewayClassName],
};

/** The indexes that the store of an extension server must have. */
export const extensionIndexes: readonly AnyIndex[] = [
  tailnets,
  bindings,
  gatewaysByClass,
  slicesByService,
  ...ROUTE_KINDS.map(kind => routesByGateway(kind) as AnyIndex),
];

type TrafficResourcesOptions = {
  readonly readsBackends?: boolean;
  /** Called with the key of each object that an index returned. */
  readonly found?: (key: Key) => void;
  readonly caBundle?: ReadCaBundle;
  /** The namespace of the mesh pods; undefined where EndpointSlices are not read. */
  readonly podNamespace?: string | undefined;
  /**
   * The namespace of the ConfigMap `mesh-trust`, which has the certificates of all ConfigMaps that tls.caRef names;
   * undefined where these are read themselves.
   */
  readonly trustNamespace?: string | undefined;
  readonly publishedTrust?: ReturnType<typeof cachedTrust>;
  readonly guard?: AddressGuard | undefined;
};

/** Reads TrafficResources through the indexes. */
export function trafficResourcesFrom(
  read: ReadResources,
  options: TrafficResourcesOptions = {},
): TrafficResources {
  const { found = () => undefined, caBundle = readCaBundle, readsBackends = true } = options;
  const { podNamespace: namespace, trustNamespace, publishedTrust = cachedTrust() } = options;
  const { guard = DEFAULT_GUARD } = options;
  const reported = <T extends Resource>(objects: readonly T[]): readonly T[] => {
    for (const object of objects) found(keyOf(refTo(object)));
    return objects;
  };
  const slicesOf = (service: Ref<'Service'>) => reported(read.find(slicesByService, keyOf(service)));
  const configMap = (namespace: string, name: string) => {
    const object = read.get({ kind: 'ConfigMap', namespace, name });
    return object && reported([object])[0];
  };
  return {
    route: ref => read.get(ref),
    routesIn: namespace =>
      reported(ROUTE_KINDS.flatMap((kind): readonly Route[] => read.find(byNamespace(kind), namespace))),
    meshEndpoints: ref => read.get(ref),
    tailnets: domain => reported(read.find(tailnets, domain)),
    grants: namespace => reported(read.find(byNamespace('ReferenceGrant'), namespace)),
    readsBackends,
    service: ref => read.get(ref),
    endpointSlices: slicesOf,
    relays: tailnet =>
      namespace === undefined
        ? undefined
        : relaysIn(slicesOf({ kind: 'Service', namespace, name: relayName(tailnet) })),
    backend: ref => read.get(ref),
    namespace: name => read.get({ kind: 'Namespace', namespace: '', name }),
    gateway: ref => read.get(ref),
    binding: gateway => selectBinding(reported(read.find(bindings, keyOf(gateway))), gateway),
    trusted: ref =>
      trustNamespace === undefined
        ? caInConfigMap(configMap(ref.namespace, ref.name), ref, caBundle)
        : publishedTrust(configMap(trustNamespace, TRUST.configMap), ref),
    caBundle,
    guard,
  };
}

/** The routes of all kinds that attach to a Gateway, unordered. */
export function routesOf(read: ReadResources, gateway: Ref<'Gateway'>): readonly Route[] {
  const key = keyOf(gateway);
  return ROUTE_KINDS.flatMap((kind): readonly Route[] => read.find(routesByGateway(kind), key));
}

/** The Gateways of a class, unordered. */
export function gatewaysOfClass(read: ReadResources, name: string): readonly Ref<'Gateway'>[] {
  return read.find(gatewaysByClass, name).map(refTo);
}

/** The operator's MeshBinding has the name of its Gateway; of others, the first by name counts, in all replicas. */
function selectBinding(
  found: readonly Kinds['MeshBinding'][],
  { name }: Ref<'Gateway'>,
): Kinds['MeshBinding'] | undefined {
  const [first] = [...found].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  return found.find(({ metadata }) => metadata.name === name) ?? first;
}
