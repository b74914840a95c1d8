import { readFileSync } from 'node:fs';
import { GROUP, API_VERSION } from '../../../../src/api/generated/kinds.ts';
import type { RouteKind } from '../../../../src/api/key.ts';
import type { ServiceName } from '../../../../lab/tailnet/backends.ts';
import type { KubernetesObject } from '../../../../lab/gateway/objects.ts';
import type { RemoteNode, Lab } from '../../../../lab/state.ts';

const NAMESPACE = 'default';

/** The MeshTailnet of a lab, with these proxies. */
export function meshTailnet({ tailnet }: Pick<Lab, 'tailnet'>, proxies: readonly string[]): KubernetesObject {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshTailnet',
    metadata: { name: 'lab' },
    spec: { tailnet: tailnet.domain, pool: { mode: 'External', addresses: proxies } },
  };
}

const PROTOCOLS: Readonly<Record<ServiceName, { readonly protocol: string; readonly isSecure?: true }>> = {
  http: { protocol: 'HTTP' },
  https: { protocol: 'HTTPS', isSecure: true },
  grpc: { protocol: 'gRPC' },
  grpcs: { protocol: 'gRPC', isSecure: true },
  tcp: { protocol: 'TCP' },
  tls: { protocol: 'TLS', isSecure: true },
  udp: { protocol: 'UDP' },
};

/** The fields of an endpoint that a test sets. */
type Endpoint = Readonly<Record<string, unknown>>;

/** A service of a remote node as an endpoint, named after the service; TLS is trusted by the authority of a node. */
export function meshEndpoint(
  remote: RemoteNode,
  service: ServiceName,
  trusted: RemoteNode = remote,
): Endpoint {
  const { protocol, isSecure } = PROTOCOLS[service];
  return {
    name: service,
    meshIP: remote.address,
    meshFQDN: remote.fqdn,
    port: remote.ports[service],
    protocol,
    ...(isSecure ? { tls: { ca: readFileSync(trusted.caFile, 'utf8') } } : {}),
  };
}

/** A MeshEndpoints of the lab's tailnet. */
export function meshEndpoints(
  { tailnet }: Pick<Lab, 'tailnet'>,
  name: string,
  endpoints: readonly Endpoint[],
): KubernetesObject {
  return {
    apiVersion: API_VERSION,
    kind: 'MeshEndpoints',
    metadata: { name, namespace: NAMESPACE },
    spec: { tailnet: tailnet.domain, endpoints },
  };
}

/** All services of a remote node in one MeshEndpoints. */
export function meshEndpointsOf(
  lab: Pick<Lab, 'tailnet'>,
  name: string,
  remote: RemoteNode,
  trusted: RemoteNode = remote,
): KubernetesObject {
  const services = Object.keys(PROTOCOLS) as ServiceName[];
  return meshEndpoints(
    lab,
    name,
    services.map(service => meshEndpoint(remote, service, trusted)),
  );
}

/** A reference of a route to a MeshEndpoints. */
type MeshRef = { readonly name: string; readonly port: number; readonly weight?: number };

/** A route to MeshEndpoints. */
export type MeshRouteOptions = {
  readonly name: string;
  readonly kind: RouteKind;
  /** The listener of the Gateway. */
  readonly listener: string;
  readonly hostnames?: readonly string[];
  readonly refs: readonly MeshRef[];
};

/** A route of the gateway of a lab. */
export function meshRoute(
  gateway: { readonly name: string },
  { name, kind, listener, hostnames, refs }: MeshRouteOptions,
): KubernetesObject {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind,
    metadata: { name, namespace: NAMESPACE },
    spec: {
      parentRefs: [{ name: gateway.name, sectionName: listener }],
      ...(hostnames ? { hostnames } : {}),
      rules: [{ backendRefs: refs.map(ref => ({ group: GROUP, kind: 'MeshEndpoints', ...ref })) }],
    },
  };
}

/** The name that Envoy Gateway gives to the cluster of a route's first rule. */
export function clusterOf({ kind, name }: Pick<MeshRouteOptions, 'kind' | 'name'>): string {
  const rule = kind === 'HTTPRoute' || kind === 'GRPCRoute' ? 0 : -1;
  return `${kind.toLowerCase()}/${NAMESPACE}/${name}/rule/${rule}`;
}
