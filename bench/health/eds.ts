import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { ClusterLoadAssignmentSchema } from '../../src/extension/proto/envoy/config/endpoint/v3_pb.ts';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
} from '../../src/extension/proto/envoy/service/discovery/v3_pb.ts';
import { HealthStatus } from '../../src/extension/proto/envoy/config/core/v3_pb.ts';

const METHOD = '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints';
const ASSIGNMENT = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';

/** The endpoints of clusters, as an Envoy has them. */
export type EdsClient = {
  /** Resolves with the time at which an endpoint had this health. */
  readonly until: (cluster: string, address: string, isUnhealthy: boolean) => Promise<number>;
  readonly close: () => void;
};

type Waiting = { readonly isDone: () => boolean; readonly resolve: (atMs: number) => void };

const TIMEOUT_MS = 30_000;

/** Subscribes to clusters of a Gateway as an Envoy does, on one stream. */
export function followEndpoints(server: string, gateway: string, clusters: readonly string[]): EdsClient {
  const client = new Client(server, credentials.createInsecure());
  const asItIs = (bytes: Buffer) => bytes;
  const stream = client.makeBidiStreamRequest(METHOD, asItIs, asItIs);
  const send = (request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>) =>
    stream.write(
      Buffer.from(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request))),
    );
  /** By cluster and address. */
  const unhealthy = new Map<string, boolean>();
  const waiting = new Set<Waiting>();
  stream.on('error', () => undefined);
  stream.on('data', (message: Buffer) => {
    const { resources, nonce } = fromBinary(DeltaDiscoveryResponseSchema, message);
    for (const { name, resource } of resources)
      for (const [address, isUnhealthy] of endpointsOf(resource?.value))
        unhealthy.set(`${name} ${address}`, isUnhealthy);
    const atMs = performance.timeOrigin + performance.now();
    for (const wait of [...waiting]) if (wait.isDone()) wait.resolve(atMs);
    send({ typeUrl: ASSIGNMENT, responseNonce: nonce });
  });
  send({
    node: { id: 'bench', cluster: gateway },
    typeUrl: ASSIGNMENT,
    resourceNamesSubscribe: [...clusters],
  });
  return {
    until: (cluster, address, isUnhealthy) =>
      new Promise((resolve, reject) => {
        const key = `${cluster} ${address}`;
        const wait: Waiting = {
          isDone: () => unhealthy.get(key) === isUnhealthy,
          resolve: atMs => {
            clearTimeout(timeout);
            waiting.delete(wait);
            resolve(atMs);
          },
        };
        const timeout = setTimeout(() => reject(new Error(`${key} did not change`)), TIMEOUT_MS);
        waiting.add(wait);
        if (wait.isDone()) wait.resolve(performance.timeOrigin + performance.now());
      }),
    close: () => {
      stream.cancel();
      client.close();
    },
  };
}

function endpointsOf(value: Uint8Array = new Uint8Array()): readonly (readonly [string, boolean])[] {
  return fromBinary(ClusterLoadAssignmentSchema, value).endpoints.flatMap(({ lbEndpoints }) =>
    lbEndpoints.flatMap(({ hostIdentifier, healthStatus }) => {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
      if (address?.case !== 'socketAddress') return [];
      return [[address.value.address, healthStatus === HealthStatus.UNHEALTHY] as const];
    }),
  );
}
