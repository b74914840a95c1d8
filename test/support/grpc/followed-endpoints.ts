import { fromBinary } from '@bufbuild/protobuf';
import { encode } from '../../../src/extension/encode.ts';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
} from '../../../src/extension/proto/envoy/service/discovery/v3_pb.ts';
import { endpointsIn } from '../extension/envoy.ts';
import type { TestClient } from './client.ts';

const DELTA_ENDPOINTS = '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints';

/** Subscribes to a cluster as the Envoy of a Gateway does; returns the present endpoints, undefined before the first response. */
export function followEndpoints(
  client: TestClient,
  gateway: string,
  cluster: string,
): () => readonly string[] | undefined {
  let endpoints: readonly string[] | undefined;
  const stream = client.stream(DELTA_ENDPOINTS);
  const write = (request: Parameters<typeof encode<typeof DeltaDiscoveryRequestSchema>>[1]) =>
    stream.write(Buffer.from(encode(DeltaDiscoveryRequestSchema, request)));
  stream.on('error', () => undefined);
  stream.on('data', (message: Buffer) => {
    const { nonce, resources } = fromBinary(DeltaDiscoveryResponseSchema, message);
    for (const { resource } of resources) endpoints = endpointsIn(resource?.value ?? new Uint8Array());
    write({ responseNonce: nonce });
  });
  write({ node: { cluster: gateway }, resourceNamesSubscribe: [cluster] });
  return () => endpoints;
}
