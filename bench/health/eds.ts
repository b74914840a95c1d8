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
  /** Resolves with the time at which an address was an endpoint that gets new requests, or was none. */
  readonly untilUse: (cluster: string, address: string, use: 'used' | 'unused') => Promise<number>;
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
  /** Of each address, by cluster. */
  const clustersByName = new Map<string, ReadonlyMap<string, HealthStatus>>();
  const waiting = new Set<Waiting>();
  stream.on('error', () => undefined);
  stream.on('data', (message: Buffer) => {
    const { resources, nonce } = fromBinary(DeltaDiscoveryResponseSchema, message);
    for (const { name, resource } of resources)
      clustersByName.set(name, new Map(endpointsOf(resource?.value)));
    const atMs = performance.timeOrigin + performance.now();
    for (const wait of [...waiting]) if (wait.isDone()) wait.resolve(atMs);
    send({ typeUrl: ASSIGNMENT, responseNonce: nonce });
  });
  send({
    node: { id: 'bench', cluster: gateway },
    typeUrl: ASSIGNMENT,
    resourceNamesSubscribe: [...clusters],
  });
  const until = (
    cluster: string,
    address: string,
    isWanted: (health: HealthStatus | undefined) => boolean,
  ): Promise<number> =>
    new Promise((resolve, reject) => {
      const wait: Waiting = {
        isDone: () => isWanted(clustersByName.get(cluster)?.get(address)),
        resolve: atMs => {
          clearTimeout(timeout);
          waiting.delete(wait);
          resolve(atMs);
        },
      };
      const timeout = setTimeout(() => reject(new Error(`${cluster} ${address} did not change`)), TIMEOUT_MS);
      waiting.add(wait);
      if (wait.isDone()) wait.resolve(performance.timeOrigin + performance.now());
    });
  return {
    until: (cluster, address, isUnhealthy) =>
      until(
        cluster,
        address,
        health => health !== undefined && (health === HealthStatus.UNHEALTHY) === isUnhealthy,
      ),
    untilUse: (cluster, address, use) =>
      until(cluster, address, health => {
        const isUsed = health === HealthStatus.UNKNOWN || health === HealthStatus.HEALTHY;
        return isUsed === (use === 'used');
      }),
    close: () => {
      stream.cancel();
      client.close();
    },
  };
}

function endpointsOf(value: Uint8Array = new Uint8Array()): readonly (readonly [string, HealthStatus])[] {
  return fromBinary(ClusterLoadAssignmentSchema, value).endpoints.flatMap(({ lbEndpoints }) =>
    lbEndpoints.flatMap(({ hostIdentifier, healthStatus }) => {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
      if (address?.case !== 'socketAddress') return [];
      return [[address.value.address, healthStatus] as const];
    }),
  );
}
