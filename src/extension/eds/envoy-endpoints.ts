import { createHash } from 'node:crypto';
import type { DescField, MessageInitShape } from '@bufbuild/protobuf';
import { familyOf } from '../../api/ip.ts';
import type { EnvoyEndpoint, LoadAssignment } from '../../traffic/endpoints/load-assignment.ts';
import type { SocketAddress } from '../../api/socket-address.ts';
import { encode, pack, typeUrlOf } from '../encode.ts';
import { MATCH_KEY } from '../envoy-cluster/transport-socket.ts';
import { AddressSchema, HealthStatus } from '../proto/envoy/config/core/v3_pb.ts';
import type { MetadataSchema } from '../proto/envoy/config/core/v3_pb.ts';
import { ClusterLoadAssignmentSchema } from '../proto/envoy/config/endpoint/v3_pb.ts';
import type { LbEndpointSchema } from '../proto/envoy/config/endpoint/v3_pb.ts';
import { DeltaDiscoveryResponseSchema } from '../proto/envoy/service/discovery/v3_pb.ts';
import { bytesField, concat } from '../wire.ts';

/** The type URL of the resources that EDS serves. */
export const ASSIGNMENT_TYPE = typeUrlOf(ClusterLoadAssignmentSchema);

/** A ClusterLoadAssignment, encoded once for all streams. */
export type EncodedResource = {
  /** A hash of the content: equal in every replica. */
  readonly version: string;
  /** A DeltaDiscoveryResponse with this resource only. */
  readonly bytes: Uint8Array;
};

/** Encodes an assignment as a versioned resource. */
export function encodeResource(assignment: LoadAssignment): EncodedResource {
  const value = encodeAssignment(assignment);
  const version = createHash('sha256').update(value).digest('hex').slice(0, VERSION_LENGTH);
  const resource = { name: assignment.cluster, version, resource: { typeUrl: ASSIGNMENT_TYPE, value } };
  return { version, bytes: encode(DeltaDiscoveryResponseSchema, { resources: [resource] }) };
}

const VERSION_LENGTH = 16;

/** Joins resources into one response: in protobuf, concatenated messages merge, and their lists are appended. */
export function encodeResponse(
  resources: readonly EncodedResource[],
  removed: readonly string[],
  nonce: string,
): readonly Uint8Array[] {
  const rest = [TYPE_FIELD, textField(NONCE, nonce), ...removed.map(name => textField(REMOVED, name))];
  return [...resources.map(({ bytes }) => bytes), concat(rest)];
}

const { nonce: NONCE, removedResources: REMOVED, typeUrl: TYPE } = DeltaDiscoveryResponseSchema.field;
const TYPE_FIELD = textField(TYPE, ASSIGNMENT_TYPE);

function textField({ number }: DescField, text: string): Uint8Array {
  return bytesField(number, Buffer.from(text));
}

/** The metadata keys under which Envoy finds the proxy of an endpoint, and the labels that match its transport socket. */
const PROXY_KEY = 'envoy.http11_proxy_transport_socket.proxy_address';
const SOCKET_KEY = 'envoy.transport_socket_match';

/** Envoy rejects the whole assignment if one number is above its maximum. */
const MAX = { port: 65_535, weight: 2 ** 32 - 1 } as const;

/** Encodes a ClusterLoadAssignment; equal assignments have equal bytes. */
export function encodeAssignment({
  cluster,
  localities,
  overprovisioningFactor,
}: LoadAssignment): Uint8Array {
  return encode(ClusterLoadAssignmentSchema, {
    clusterName: cluster,
    endpoints: localities.map(({ backend, weight, priority, endpoints }) => ({
      locality: { region: regionOf(cluster, backend) },
      lbEndpoints: endpoints.filter(isValid).map(lbEndpoint),
      loadBalancingWeight: validWeight(weight),
      priority,
    })),
    ...(overprovisioningFactor !== undefined && { policy: { overprovisioningFactor } }),
  });
}

/** The region that Envoy Gateway sets for a backend; for a cluster of one backend it is the cluster's name. */
function regionOf(cluster: string, backend: number): string {
  const suffix = `/backend/${backend}`;
  return cluster.endsWith(suffix) ? cluster : cluster + suffix;
}

/** Envoy rejects the whole assignment for one invalid address or port, so such endpoints are left out. */
function isValid({ address, port, proxy }: EnvoyEndpoint): boolean {
  return [{ address, port }, ...(proxy ? [proxy] : [])].every(
    place => place.port >= 1 && place.port <= MAX.port && familyOf(place.address) !== undefined,
  );
}

function lbEndpoint(endpoint: EnvoyEndpoint) {
  const { hostname, healthCheckHost, isHealthCheckDisabled, health, weight } = endpoint;
  const value = {
    address: addressOf(endpoint),
    hostname: hostname ?? '',
    ...((healthCheckHost !== '' || isHealthCheckDisabled) && {
      healthCheckConfig: { hostname: healthCheckHost, disableActiveHealthCheck: isHealthCheckDisabled },
    }),
  };
  return {
    hostIdentifier: { case: 'endpoint', value },
    healthStatus: HealthStatus[health],
    metadata: metadataOf(endpoint),
    loadBalancingWeight: validWeight(weight),
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

function validWeight(weight: number): number {
  return Math.min(Math.max(Math.floor(weight), 1), MAX.weight);
}
