import { ENVOY_GATEWAY_GROUP } from '../api/backends.ts';
import type { BackendRef } from '../api/gateway-api.ts';
import type { SocketAddress } from './socket-address.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';
import type { TrafficResources } from './traffic-resources.ts';
import { isPermitted } from './permissions.ts';
import { isMeshEndpoints } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';

/** A backend of a rule that is not ours, with the addresses to which Envoy Gateway would send its traffic. */
export type OtherBackend = {
  /** Its position among all references of the rule. */
  readonly index: number;
  readonly ref: BackendRef;
  readonly socket: OtherSocket;
  /** 1 where it is used only while nothing else can be. */
  readonly priority: 0 | 1;
  readonly endpoints: readonly OtherEndpoint[];
};

/** The socket of such a backend among those of the cluster. */
export type OtherSocket = {
  /** By this its endpoints choose it. It stays when the backend gets another place in the rule, or others a weight. */
  readonly name: string;
  /** The name that Envoy Gateway gives to a socket that it makes for it. */
  readonly envoyGatewayName: string;
};

/** An address of such a backend; one that is draining gets no new traffic. */
type OtherEndpoint = SocketAddress & { readonly isDraining: boolean };

/** Whether we can serve the endpoints of a backend that is not ours. */
export function isServiceOrBackend({ ref }: RouteBackendRef): boolean {
  return isService(ref) || isBackend(ref);
}

function isService({ group, kind }: BackendRef): boolean {
  return group === '' && kind === 'Service';
}

function isBackend({ group, kind }: BackendRef): boolean {
  return group === ENVOY_GATEWAY_GROUP && kind === 'Backend';
}

/**
 * The backends of a rule that are not ours. Envoy Gateway counts those that have a weight, and where one of them brings
 * TLS by a policy, it makes a socket in the cluster that is named after that number.
 */
export function otherBackendsOf(
  resources: TrafficResources,
  { text }: EnvoyClusterName,
  references: readonly RouteBackendRef[],
): readonly OtherBackend[] {
  return references
    .filter(({ ref }) => ref.weight > 0)
    .flatMap((at, nth): readonly OtherBackend[] => {
      if (isMeshEndpoints(at)) return [];
      const { index, ref } = at;
      const isAllowed = isPermittedFrom(resources, at);
      const isFallback = isBackend(ref) && backendOf(resources, ref)?.isFallback === true;
      return [
        {
          index,
          ref,
          socket: { name: socketNameOf(ref), envoyGatewayName: `${text}/tls/${nth}` },
          priority: isFallback ? 1 : 0,
          endpoints: isAllowed ? endpointsOf(resources, ref) : [],
        },
      ];
    });
}

/** A policy can set the TLS of a single port. */
function socketNameOf({ kind, namespace, name, port }: BackendRef): string {
  return `${kind}/${namespace}/${name}${port === undefined ? '' : `:${port}`}`;
}

/** Whether Envoy Gateway finds a backend and, of a Service, addresses; kinds that are not read count as found. */
export function isResolved(resources: TrafficResources, at: RouteBackendRef): boolean {
  const { namespace, name } = at.ref;
  if (isMeshEndpoints(at)) {
    if (resources.meshEndpoints({ kind: 'MeshEndpoints', namespace, name }) === undefined) return false;
  } else if (isServiceOrBackend(at)) {
    if (endpointsOf(resources, at.ref).length === 0) return false;
  }
  return isPermittedFrom(resources, at);
}

function isPermittedFrom(resources: TrafficResources, { route, ref }: RouteBackendRef): boolean {
  const { kind, metadata } = route;
  return isPermitted(resources, { kind, namespace: metadata.namespace ?? '' }, ref);
}

/** In an order that follows from the addresses, so that all replicas send the same. */
function endpointsOf(resources: TrafficResources, ref: BackendRef): readonly OtherEndpoint[] {
  const all = isService(ref) ? serviceEndpoints(resources, ref) : backendEndpoints(resources, ref);
  const byAddress = new Map<string, OtherEndpoint>();
  for (const endpoint of all) {
    const text = `${endpoint.address} ${endpoint.port}`;
    if (byAddress.get(text)?.isDraining !== false) byAddress.set(text, endpoint);
  }
  return [...byAddress].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}

/** The endpoints of all EndpointSlices of a Service that have its port, which is known to them by its name. */
function serviceEndpoints(
  resources: TrafficResources,
  { namespace, name, port }: BackendRef,
): readonly OtherEndpoint[] {
  const service = { kind: 'Service', namespace, name } as const;
  const wanted = resources.service(service)?.ports.find(each => each.port === port);
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

function backendEndpoints(resources: TrafficResources, ref: BackendRef): readonly OtherEndpoint[] {
  const endpoints = backendOf(resources, ref)?.endpoints ?? [];
  return endpoints.map(endpoint => ({ ...endpoint, isDraining: false }));
}

function backendOf(resources: TrafficResources, { namespace, name }: BackendRef) {
  return resources.backend({ kind: 'Backend', namespace, name });
}
