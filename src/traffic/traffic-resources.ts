import type { Backend, EndpointSlice, Service } from '../api/backends.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { Gateway, Namespace, ReferenceGrant, Route } from '../api/gateway-api.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import type { CaBundle } from './certificates.ts';

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
