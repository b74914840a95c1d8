import type { Backend, BackendTLSPolicy, EndpointSlice, Service } from '../api/objects/backends.ts';
import type {
  Gateway,
  GatewayClass,
  ListenerSet,
  Namespace,
  ReferenceGrant,
  Route,
} from '../api/objects/gateway-api.ts';
import type { BackendTrafficPolicy, EnvoyProxy } from '../api/objects/traffic-policy.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import type { CaRef, TrustedCa } from '../api/trust.ts';
import type { AddressGuard } from './address-guard.ts';
import type { GatewaySettings } from './gateway-settings.ts';
import type { CaBundle } from './upstream-tls.ts';

/** The resources that traffic depends on, read from a cache without waiting. Lists are in no particular order. */
export interface TrafficResources {
  route(ref: Ref<RouteKind>): Route | undefined;
  /** The routes of all kinds in a namespace that have MeshEndpoints among their backends. */
  meshRoutesIn(namespace: string): readonly Route[];
  meshEndpoints(ref: Ref<'MeshEndpoints'>): Kinds['MeshEndpoints'] | undefined;
  /** The MeshRoutePolicies that target a route, wholly or by a rule. */
  routePolicies(route: Ref<RouteKind>): readonly Kinds['MeshRoutePolicy'][];
  /** The MeshTailnets with this spec.tailnet. */
  tailnets(domain: string): readonly Kinds['MeshTailnet'][];
  /** The ReferenceGrants of a namespace. */
  grants(namespace: string): readonly ReferenceGrant[];
  /** The BackendTLSPolicies of a namespace. */
  backendTlsPolicies(namespace: string): readonly BackendTLSPolicy[];
  /** Whether Services, EndpointSlices and Backends are read; where they are not, as in the operator, each counts as found. */
  readonly readsBackends: boolean;
  /** Whether Services are read, with or without their EndpointSlices. */
  readonly readsServices: boolean;
  service(ref: Ref<'Service'>): Service | undefined;
  endpointSlices(service: Ref<'Service'>): readonly EndpointSlice[];
  /** The mesh pods of a MeshTailnet that relay datagrams; undefined where EndpointSlices are not read. */
  relays(tailnet: string): readonly Relay[] | undefined;
  /** A Backend of Envoy Gateway. */
  backend(ref: Ref<'Backend'>): Backend | undefined;
  namespace(name: string): Namespace | undefined;
  gateway(ref: Ref<'Gateway'>): Gateway | undefined;
  listenerSet(ref: Ref<'ListenerSet'>): ListenerSet | undefined;
  gatewayClass(name: string): GatewayClass | undefined;
  /** The BackendTrafficPolicies that name an object, wholly or by a section, and all that select objects by labels. */
  trafficPolicies(target: Ref<PolicyTargetKind>): readonly BackendTrafficPolicy[];
  envoyProxy(ref: Ref<'EnvoyProxy'>): EnvoyProxy | undefined;
  /** The settings of a Gateway; undefined where it has none. */
  gatewaySettings(ref: Ref<'Gateway'>): GatewaySettings | undefined;
  /** The certificates that tls.caRef of a MeshEndpoints names. */
  trusted(ref: CaRef): TrustedCa;
  /** The certificates in a PEM text; a pure function that an implementation may cache. */
  caBundle(pem: string): CaBundle;
  /** Which addresses may get traffic. The settings of clusters do not depend on it, and so no revision does. */
  readonly guard: AddressGuard;
}

/** The kinds of objects that a BackendTrafficPolicy can target. */
export type PolicyTargetKind = RouteKind | 'Gateway' | 'ListenerSet';

/** A mesh pod that relays datagrams into a tailnet. */
export type Relay = {
  readonly address: string;
  /** It terminates or is not ready: it gets no new traffic. */
  readonly isDraining: boolean;
};
