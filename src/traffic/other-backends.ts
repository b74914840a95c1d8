import { isOverHttp } from '../api/key.ts';
import { ENVOY_GATEWAY_GROUP } from '../api/objects/backends.ts';
import type { BackendRef } from '../api/objects/gateway-api.ts';
import type { SocketAddress } from '../api/socket-address.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';
import type { TrafficResources } from './traffic-resources.ts';
import { isReachedByAddress } from './policy/service-routing.ts';
import { isMeshEndpoints } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';
import { isPermitted } from './permissions.ts';

/** A Service or Backend of a rule, with the endpoints that Envoy Gateway would give it. */
export type OtherBackend = {
  /** Its index among all backendRefs of the rule. */
  readonly index: number;
  readonly ref: BackendRef;
  readonly socket: OtherSocket;
  /** 1 for a fallback Backend. */
  readonly priority: 0 | 1;
  readonly endpoints: readonly OtherEndpoint[];
};

/** The transport socket of a Service or Backend in the cluster. */
export type OtherSocket = {
  /** The name by which endpoints select it. It does not change with the order or weights of the backendRefs. */
  readonly name: string;
  /** The name of the socket if Envoy Gateway makes one, for a BackendTLSPolicy. */
  readonly envoyGatewayName: string;
};

/** An endpoint of a Service or Backend; a draining one gets no new requests. */
export type OtherEndpoint = SocketAddress & { readonly isDraining: boolean };

/*
 * Envoy Gateway names the transport socket of a backend with TLS by its position among those that it has resolved. A rule of
 * an HTTPRoute or GRPCRoute of which it has not resolved all has no cluster; one of a TLSRoute or TCPRoute has one without the
 * others, so that the positions are not known, nor whether a backend has no socket because its TLS could not be read.
 */

/** Whether the extension server can serve the endpoints of a backend beside those of MeshEndpoints. */
export function canMixWith(resources: TrafficResources, backendRef: RouteBackendRef): boolean {
  const { route, ref } = backendRef;
  switch (route.kind) {
    case 'HTTPRoute':
    case 'GRPCRoute':
      return isServiceOrBackend(backendRef);
    case 'TLSRoute':
    case 'TCPRoute':
      return isService(ref) && !hasTlsPolicy(resources, ref);
    case 'UDPRoute':
      return false;
  }
}

/**
 * Whether Envoy Gateway alone can serve the endpoints of a backend of a rule over HTTP: those of another cluster, or host names. Its
 * cluster of the rule then serves them, and MeshEndpoints have clusters of their own.
 */
export function isServedApart(resources: TrafficResources, { route, ref }: RouteBackendRef): boolean {
  if (!isOverHttp(route.kind)) return false;
  const isImport = ref.group === 'multicluster.x-k8s.io' && ref.kind === 'ServiceImport';
  return isImport || (isBackend(ref) && backendOf(resources, ref)?.hasHostNames === true);
}

/** Whether a policy sets the TLS of a Service, or of one of its ports. */
export function hasTlsPolicy(
  resources: TrafficResources,
  { group, kind, namespace, name }: BackendRef,
): boolean {
  return resources
    .backendTlsPolicies(namespace)
    .some(({ targetRefs }) =>
      targetRefs.some(target => target.group === group && target.kind === kind && target.name === name),
    );
}

/** Whether a backend is a Service beside which MeshEndpoints can be, and no policy gives it TLS. */
export function isWithoutTls(resources: TrafficResources, backendRef: RouteBackendRef): boolean {
  const { ref } = backendRef;
  return isService(ref) && canMixWith(resources, backendRef) && !hasTlsPolicy(resources, ref);
}

function isServiceOrBackend({ ref }: RouteBackendRef): boolean {
  return isService(ref) || isBackend(ref);
}

function isService({ group, kind }: BackendRef): boolean {
  return group === '' && kind === 'Service';
}

function isBackend({ group, kind }: BackendRef): boolean {
  return group === ENVOY_GATEWAY_GROUP && kind === 'Backend';
}

/**
 * The Services and Backends of a rule. Envoy Gateway names the transport socket of a BackendTLSPolicy by the position of the
 * backendRef among those with a weight.
 */
export function otherBackendsOf(
  resources: TrafficResources,
  { text }: EnvoyClusterName,
  references: readonly RouteBackendRef[],
): readonly OtherBackend[] {
  return references
    .filter(({ ref }) => ref.weight > 0)
    .flatMap((backendRef, position): readonly OtherBackend[] => {
      if (isMeshEndpoints(backendRef)) return [];
      const { index, ref } = backendRef;
      const isAllowed = isPermittedFrom(resources, backendRef);
      const isFallback = isBackend(ref) && backendOf(resources, ref)?.isFallback === true;
      return [
        {
          index,
          ref,
          socket: { name: socketNameOf(ref), envoyGatewayName: `${text}/tls/${position}` },
          priority: isFallback ? 1 : 0,
          endpoints: isAllowed && resources.readsBackends ? endpointsOf(resources, ref) : [],
        },
      ];
    });
}

/** A policy can set the TLS of a single port. */
export function socketNameOf({ kind, namespace, name, port }: BackendRef): string {
  return `${kind}/${namespace}/${name}${port === undefined ? '' : `:${port}`}`;
}

/**
 * Whether Envoy Gateway finds the backend and, for a Service or Backend, endpoints, which a Service that is reached by its own
 * address does not need; kinds that are not watched count as found.
 */
export function isResolved(
  resources: TrafficResources,
  backendRef: RouteBackendRef,
  rule: EnvoyClusterName['rule'],
): boolean {
  const { namespace, name } = backendRef.ref;
  if (isMeshEndpoints(backendRef)) {
    if (resources.meshEndpoints({ kind: 'MeshEndpoints', namespace, name }) === undefined) return false;
  } else if (resources.readsBackends && isServiceOrBackend(backendRef)) {
    const hasEndpoints =
      endpointsOf(resources, backendRef.ref).length > 0 || isServedApart(resources, backendRef);
    if (!hasEndpoints && !isReachedByAddress(resources, backendRef, rule)) return false;
  }
  return isPermittedFrom(resources, backendRef);
}

function isPermittedFrom(resources: TrafficResources, { route, ref }: RouteBackendRef): boolean {
  const { kind, metadata } = route;
  return isPermitted(resources, { kind, namespace: metadata.namespace ?? '' }, ref);
}

function endpointsOf(resources: TrafficResources, ref: BackendRef): readonly OtherEndpoint[] {
  return isService(ref)
    ? endpointsOfService(resources, ref)
    : inOrder(backendOf(resources, ref)?.endpoints.map(each => ({ ...each, isDraining: false })) ?? []);
}

/** The endpoints of a Service with a port; of both transports, where the route does not decide it. */
export function endpointsOfService(
  resources: TrafficResources,
  ref: BackendRef,
  transport?: 'TCP' | 'UDP',
): readonly OtherEndpoint[] {
  return inOrder(serviceEndpoints(resources, ref, transport));
}

/** Each once, in an order that follows from the addresses, so that all replicas send equal assignments. */
function inOrder(all: readonly OtherEndpoint[]): readonly OtherEndpoint[] {
  const byAddress = new Map<string, OtherEndpoint>();
  for (const endpoint of all) {
    const text = `${endpoint.address} ${endpoint.port}`;
    if (byAddress.get(text)?.isDraining !== false) byAddress.set(text, endpoint);
  }
  return [...byAddress].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}

/** The endpoints of all EndpointSlices of a Service that have its port, by the name of the port. */
function serviceEndpoints(
  resources: TrafficResources,
  { namespace, name, port }: BackendRef,
  transport: 'TCP' | 'UDP' | undefined,
): readonly OtherEndpoint[] {
  const service = { kind: 'Service', namespace, name } as const;
  const wanted = resources
    .service(service)
    ?.ports.find(each => each.port === port && (transport ?? each.protocol) === each.protocol);
  if (!wanted) return [];
  const slices = resources.endpointSlices(service).filter(({ addressType }) => addressType !== 'FQDN');
  return slices.flatMap(({ ports, endpoints }) =>
    ports
      .filter(each => each.name === wanted.name && each.protocol === wanted.protocol)
      .flatMap(({ port: target }) =>
        target === undefined
          ? []
          : endpoints.flatMap(({ addresses, isDraining }) =>
              addresses.map(address => ({ address, port: target, isDraining })),
            ),
      ),
  );
}

function backendOf(resources: TrafficResources, { namespace, name }: BackendRef) {
  return resources.backend({ kind: 'Backend', namespace, name });
}
