import { keyOf } from '../api/key.ts';
import type { Key, Ref, RouteKind } from '../api/key.ts';
import { refTo } from '../api/references.ts';
import type { Resource } from '../api/resource.ts';
import type { Backend, EndpointSlice, Service } from '../api/backends.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { Gateway, Namespace, ReferenceGrant, Route } from '../api/gateway-api.ts';
import type { CaBundle } from './upstream-tls.ts';

/** What is declared, as far as traffic depends on it. Everything that is asked here answers at once. */
export interface TrafficResources {
  route(ref: Ref<RouteKind>): Route | undefined;
  meshEndpoints(ref: Ref<'MeshEndpoints'>): Kinds['MeshEndpoints'] | undefined;
  /** The MeshTailnets of a domain, in no particular order. */
  tailnets(domain: string): readonly Kinds['MeshTailnet'][];
  /** The grants that live in a namespace. */
  grants(namespace: string): readonly ReferenceGrant[];
  service(ref: Ref<'Service'>): Service | undefined;
  /** The EndpointSlices of a Service, in no particular order. */
  endpointSlices(service: Ref<'Service'>): readonly EndpointSlice[];
  backend(ref: Ref<'Backend'>): Backend | undefined;
  namespace(name: string): Namespace | undefined;
  gateway(ref: Ref<'Gateway'>): Gateway | undefined;
  /** What has been decided for a Gateway as a whole. */
  binding(ref: Ref<'Gateway'>): Kinds['MeshBinding'] | undefined;
  /** What a PEM text of authorities, as it is declared, is good for: always the same. */
  caBundle(pem: string): CaBundle;
}

/** Something that was asked for, as a text: an object, or all objects that are found by a value. */
export type Dependency =
  Key | `tailnet:${string}` | `grants:${string}` | `slices:${string}` | `binding:${string}`;

/** The same declarations, telling of everything that is asked for, found or not. */
export function trackDependencies(
  resources: TrafficResources,
  note: (dependency: Dependency) => void,
): TrafficResources {
  const noted = (ref: Ref) => note(keyOf(ref));
  return {
    route: ref => {
      noted(ref);
      return resources.route(ref);
    },
    meshEndpoints: ref => {
      noted(ref);
      return resources.meshEndpoints(ref);
    },
    tailnets: domain => {
      note(`tailnet:${domain}`);
      return resources.tailnets(domain);
    },
    grants: namespace => {
      note(`grants:${namespace}`);
      return resources.grants(namespace);
    },
    service: ref => {
      noted(ref);
      return resources.service(ref);
    },
    endpointSlices: service => {
      note(slicesOf(service));
      return resources.endpointSlices(service);
    },
    backend: ref => {
      noted(ref);
      return resources.backend(ref);
    },
    namespace: name => {
      noted({ kind: 'Namespace', namespace: '', name });
      return resources.namespace(name);
    },
    gateway: ref => {
      noted(ref);
      return resources.gateway(ref);
    },
    binding: ref => {
      note(bindingOf(ref));
      return resources.binding(ref);
    },
    caBundle: pem => resources.caBundle(pem),
  };
}

/**
 * What a change of an object touches. A change concerns what the object touched before as well as what it touches now,
 * so whoever follows changes remembers these texts for each object.
 */
export function dependenciesOf(object: Resource): readonly Dependency[] {
  switch (object.kind) {
    case 'MeshTailnet':
      return [`tailnet:${object.spec.tailnet}`];
    case 'ReferenceGrant':
      return [`grants:${object.metadata.namespace ?? ''}`];
    case 'EndpointSlice':
      return [slicesOf({ namespace: object.metadata.namespace ?? '', name: object.service })];
    case 'MeshBinding': {
      const namespace = object.metadata.namespace ?? '';
      return object.spec.targetRefs.map(({ name }) => bindingOf({ namespace, name }));
    }
    case 'MeshEndpoints':
    case 'HTTPRoute':
    case 'GRPCRoute':
    case 'TLSRoute':
    case 'TCPRoute':
    case 'UDPRoute':
    case 'Gateway':
    case 'GatewayClass':
    case 'Namespace':
    case 'Service':
    case 'Backend':
      return [keyOf(refTo(object))];
  }
}

function slicesOf({ namespace, name }: Pick<Ref, 'namespace' | 'name'>): Dependency {
  return `slices:${namespace}/${name}`;
}

function bindingOf({ namespace, name }: Pick<Ref, 'namespace' | 'name'>): Dependency {
  return `binding:${namespace}/${name}`;
}
