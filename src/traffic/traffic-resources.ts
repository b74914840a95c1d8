import type { Backend, EndpointSlice, Service } from '../api/objects/backends.ts';
import type { Gateway, Namespace, ReferenceGrant, Route } from '../api/objects/gateway-api.ts';
import type { Kinds } from '../api/generated/types.ts';
import { keyOf } from '../api/key.ts';
import type { Key, Ref, RouteKind } from '../api/key.ts';
import { relayName, TRUST } from '../api/names.ts';
import { refTo } from '../api/objects/references.ts';
import type { Resource } from '../api/objects/resource.ts';
import { caRefIn, parseTrust } from '../api/trust.ts';
import type { CaRef, TrustedCa } from '../api/trust.ts';
import type { AddressGuard } from './address-guard.ts';
import type { CaBundle } from './upstream-tls.ts';

/** The resources that traffic depends on, read from a cache without waiting. Lists are in no particular order. */
export interface TrafficResources {
  route(ref: Ref<RouteKind>): Route | undefined;
  /** The routes of all kinds in a namespace. */
  routesIn(namespace: string): readonly Route[];
  meshEndpoints(ref: Ref<'MeshEndpoints'>): Kinds['MeshEndpoints'] | undefined;
  /** The MeshTailnets with this spec.tailnet. */
  tailnets(domain: string): readonly Kinds['MeshTailnet'][];
  /** The ReferenceGrants of a namespace. */
  grants(namespace: string): readonly ReferenceGrant[];
  /** Whether Services, EndpointSlices and Backends are read; where they are not, as in the operator, each counts as found. */
  readonly readsBackends: boolean;
  service(ref: Ref<'Service'>): Service | undefined;
  endpointSlices(service: Ref<'Service'>): readonly EndpointSlice[];
  /** The mesh pods of a MeshTailnet that relay datagrams; undefined where EndpointSlices are not read. */
  relays(tailnet: string): readonly Relay[] | undefined;
  /** A Backend of Envoy Gateway. */
  backend(ref: Ref<'Backend'>): Backend | undefined;
  namespace(name: string): Namespace | undefined;
  gateway(ref: Ref<'Gateway'>): Gateway | undefined;
  /** The MeshBinding that targets a Gateway. */
  binding(ref: Ref<'Gateway'>): Kinds['MeshBinding'] | undefined;
  /** The certificates that tls.caRef of a MeshEndpoints names. */
  trusted(ref: CaRef): TrustedCa;
  /** The certificates in a PEM text; a pure function that an implementation may cache. */
  caBundle(pem: string): CaBundle;
  /** Which addresses may get traffic. The settings of clusters do not depend on it, and so no revision does. */
  readonly guard: AddressGuard;
}

/** A mesh pod that relays datagrams into a tailnet. */
export type Relay = {
  readonly address: string;
  /** It terminates or is not ready: it gets no new traffic. */
  readonly isDraining: boolean;
};

/** A key under which a read is recorded: one object, or all objects found by a value. */
export type Dependency =
  | Key
  | `tailnet:${string}`
  | `grants:${string}`
  | `slices:${string}`
  | `relays:${string}`
  | `trust:${string}`
  | `binding:${string}`
  | `routes-in:${string}`;

/** The same resources, with each read recorded, whether it finds an object or not. */
export function trackDependencies(
  resources: TrafficResources,
  record: (dependency: Dependency) => void,
): TrafficResources {
  const recordRef = (ref: Ref) => record(keyOf(ref));
  return {
    route: ref => {
      recordRef(ref);
      return resources.route(ref);
    },
    routesIn: namespace => {
      record(routesIn(namespace));
      return resources.routesIn(namespace);
    },
    meshEndpoints: ref => {
      recordRef(ref);
      return resources.meshEndpoints(ref);
    },
    tailnets: domain => {
      record(`tailnet:${domain}`);
      return resources.tailnets(domain);
    },
    grants: namespace => {
      record(`grants:${namespace}`);
      return resources.grants(namespace);
    },
    readsBackends: resources.readsBackends,
    service: ref => {
      recordRef(ref);
      return resources.service(ref);
    },
    endpointSlices: service => {
      record(slicesOf(service));
      return resources.endpointSlices(service);
    },
    relays: tailnet => {
      record(`relays:${tailnet}`);
      return resources.relays(tailnet);
    },
    backend: ref => {
      recordRef(ref);
      return resources.backend(ref);
    },
    namespace: name => {
      recordRef({ kind: 'Namespace', namespace: '', name });
      return resources.namespace(name);
    },
    gateway: ref => {
      recordRef(ref);
      return resources.gateway(ref);
    },
    binding: ref => {
      record(bindingOf(ref));
      return resources.binding(ref);
    },
    trusted: ref => {
      record(trustOf(ref));
      record(trustOf({ namespace: ref.namespace, name: '' }));
      return resources.trusted(ref);
    },
    caBundle: pem => resources.caBundle(pem),
    guard: resources.guard,
  };
}

/**
 * The keys of the reads that a change of an object affects. A change affects those of the old object too, so a caller
 * keeps the keys of each object.
 */
export function dependenciesOf(object: Resource): readonly Dependency[] {
  switch (object.kind) {
    case 'MeshTailnet':
      return [`tailnet:${object.spec.tailnet}`];
    case 'ReferenceGrant':
      return [`grants:${object.metadata.namespace ?? ''}`];
    case 'EndpointSlice': {
      const { metadata, service: name } = object;
      return [slicesOf({ namespace: metadata.namespace ?? '', name }), ...relaysOf(name)];
    }
    case 'MeshBinding': {
      const namespace = object.metadata.namespace ?? '';
      return object.spec.targetRefs.map(({ name }) => bindingOf({ namespace, name }));
    }
    case 'ConfigMap': {
      const { metadata, data } = object;
      const refs = metadata.name === TRUST.configMap ? [...parseTrust(data).keys()].map(caRefIn) : [];
      const own = { namespace: metadata.namespace ?? '', name: metadata.name };
      return [...new Set([own, ...refs].map(trustOf))];
    }
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute':
    case 'TCPRoute':
    case 'UDPRoute':
      return [keyOf(refTo(object)), routesIn(object.metadata.namespace ?? '')];
    case 'MeshEndpoints':
    case 'Gateway':
    case 'GatewayClass':
    case 'Namespace':
    case 'Service':
    case 'Backend':
      return [keyOf(refTo(object))];
    case 'Pod':
      return [];
  }
}

function routesIn(namespace: string): Dependency {
  return `routes-in:${namespace}`;
}

function slicesOf({ namespace, name }: Pick<Ref, 'namespace' | 'name'>): Dependency {
  return `slices:${namespace}/${name}`;
}

/** Whatever its namespace: only one has relays, and a needless invalidation does no harm. */
function relaysOf(service: string): readonly Dependency[] {
  const prefix = relayName('');
  return service.startsWith(prefix) ? [`relays:${service.slice(prefix.length)}`] : [];
}

function trustOf({ namespace, name }: Pick<Ref, 'namespace' | 'name'>): Dependency {
  return `trust:${namespace}/${name}`;
}

function bindingOf({ namespace, name }: Pick<Ref, 'namespace' | 'name'>): Dependency {
  return `binding:${namespace}/${name}`;
}
