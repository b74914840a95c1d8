import type { MessageInitShape } from '@bufbuild/protobuf';
import { familyOf } from '../../api/ip.ts';
import type { EnvoyEndpoint, LoadAssignment } from '../../traffic/load-assignment.ts';
import type { SocketAddress } from '../../traffic/socket-address.ts';
import { encode, pack } from '../encode.ts';
import { AddressSchema, HealthStatus } from '../proto/envoy/config/core/v3_pb.ts';
import type { MetadataSchema } from '../proto/envoy/config/core/v3_pb.ts';
import { ClusterLoadAssignmentSchema } from '../proto/envoy/config/endpoint/v3_pb.ts';
import type { LbEndpointSchema } from '../proto/envoy/config/endpoint/v3_pb.ts';
import { MATCH_KEY } from '../envoy-cluster/transport-socket.ts';

/** Under these keys Envoy looks for the proxy of an endpoint, and for its socket among several. */
const PROXY_KEY = 'envoy.http11_proxy_transport_socket.proxy_address';
const SOCKET_KEY = 'envoy.transport_socket_match';

/** Envoy refuses all endpoints of a cluster for one number beyond. */
const HIGHEST = { port: 65_535, weight: 2 ** 32 - 1 } as const;

/** What Envoy is told of the endpoints of a cluster, as bytes of a ClusterLoadAssignment: the same for the same. */
export function encodeAssignment({ cluster, localities }: LoadAssignment): Uint8Array {
  return encode(ClusterLoadAssignmentSchema, {
    clusterName: cluster,
    endpoints: localities.map(({ backend, weight, priority, endpoints }) => ({
      locality: { region: regionOf(cluster, backend) },
      lbEndpoints: endpoints.filter(isReachable).map(lbEndpoint),
      loadBalancingWeight: positive(weight),
      priority,
    })),
  });
}

/** The region by which Envoy Gateway names what belongs to one backend; where each has its cluster, the cluster's name. */
function regionOf(cluster: string, backend: number): string {
  const suffix = `/backend/${backend}`;
  return cluster.endsWith(suffix) ? cluster : cluster + suffix;
}

/** One address or port that Envoy refuses would cost the cluster all others. */
function isReachable({ address, port, proxy }: EnvoyEndpoint): boolean {
  return [{ address, port }, ...(proxy ? [proxy] : [])].every(
    place => place.port >= 1 && place.port <= HIGHEST.port && familyOf(place.address) !== undefined,
  );
}

function lbEndpoint(endpoint: EnvoyEndpoint) {
  const { hostname, healthCheckHost, isHealthCheckDisabled, health, weight } = endpoint;
  const value = {
    address: addressOf(endpoint),
    hostname: hostname ?? '',
    ...(healthCheckHost !== '' && {
      healthCheckConfig: { hostname: healthCheckHost, disableActiveHealthCheck: isHealthCheckDisabled },
    }),
  };
  return {
    hostIdentifier: { case: 'endpoint', value },
    healthStatus: HealthStatus[health],
    metadata: metadataOf(endpoint),
    loadBalancingWeight: positive(weight),
  } satisfies MessageInitShape<typeof LbEndpointSchema>;
}

function metadataOf(endpoint: EnvoyEndpoint): MessageInitShape<typeof MetadataSchema> {
  const { proxy, socketMatch } = endpoint;
  return {
    ...(socketMatch !== undefined && { filterMetadata: { [SOCKET_KEY]: { [MATCH_KEY]: socketMatch } } }),
    ...(proxy && { typedFilterMetadata: { [PROXY_KEY]: pack(AddressSchema, addressOf(proxy)) } }),
  };
}

function addressOf({ address, port }: SocketAddress) {
  const value = { address, portSpecifier: { case: 'portValue', value: port } } as const;
  return { address: { case: 'socketAddress', value } } satisfies MessageInitShape<typeof AddressSchema>;
}

function positive(weight: number): number {
  return Math.min(Math.max(Math.floor(weight), 1), HIGHEST.weight);
}
