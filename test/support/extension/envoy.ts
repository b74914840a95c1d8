import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  Bytes,
  Methods,
  ServerStream,
  StreamListener,
  GrpcStatus,
} from '../../../src/extension/grpc/method.ts';
import { ClusterLoadAssignmentSchema } from '../../../src/extension/proto/envoy/config/endpoint/v3_pb.ts';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
} from '../../../src/extension/proto/envoy/service/discovery/v3_pb.ts';
import type { DeltaDiscoveryResponse } from '../../../src/extension/proto/envoy/service/discovery/v3_pb.ts';

const DELTA_ENDPOINTS = '/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints';

/** The type of what Envoy asks for. */
export const ASSIGNMENT_TYPE = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';

type Request = MessageInitShape<typeof DeltaDiscoveryRequestSchema>;

/** An Envoy on one stream: it keeps what it is sent as the protocol says, and answers only when it is told to. */
export class Envoy implements ServerStream {
  readonly responses: DeltaDiscoveryResponse[] = [];
  /** What it has: the version of each cluster, and its endpoints as `address:port` with their health if it is not good. */
  readonly versions = new Map<string, string>();
  readonly endpoints = new Map<string, readonly string[]>();
  ended: GrpcStatus | undefined;
  /** Whether there is room for more once something was sent. */
  hasRoom = true;
  readonly #listener: StreamListener;

  constructor(methods: Methods) {
    const method = methods.get(DELTA_ENDPOINTS);
    if (method?.is !== 'streaming') throw new Error('there is no such stream');
    this.#listener = method.open(this);
  }

  send(message: Bytes): boolean {
    if (this.ended) throw new Error('nothing may be sent after the end');
    const response = fromBinary(DeltaDiscoveryResponseSchema, bytesOf(message));
    this.responses.push(response);
    for (const { name, version, resource } of response.resources) {
      this.versions.set(name, version);
      this.endpoints.set(name, endpointsIn(resource?.value ?? new Uint8Array()));
    }
    // Envoy forgets the version of what is removed, and keeps its endpoints.
    for (const name of response.removedResources) this.versions.delete(name);
    return this.hasRoom;
  }

  end(status: GrpcStatus = { code: 'OK', message: '' }): void {
    this.ended = status;
    this.#listener.closed();
  }

  /** Names clusters for the first time on this stream. */
  begin(gateway: string, clusters: readonly string[], versions: Readonly<Record<string, string>> = {}): this {
    return this.request({
      node: { id: 'envoy-1', cluster: gateway },
      typeUrl: ASSIGNMENT_TYPE,
      resourceNamesSubscribe: [...clusters],
      initialResourceVersions: { ...versions },
    });
  }

  subscribe(...clusters: readonly string[]): this {
    return this.request({ typeUrl: ASSIGNMENT_TYPE, resourceNamesSubscribe: [...clusters] });
  }

  unsubscribe(...clusters: readonly string[]): this {
    for (const cluster of clusters) this.versions.delete(cluster);
    return this.request({ typeUrl: ASSIGNMENT_TYPE, resourceNamesUnsubscribe: [...clusters] });
  }

  /** Takes the last response, or refuses it. */
  answer(refusal?: string): this {
    const nonce = this.responses.at(-1)?.nonce ?? '';
    const errorDetail = refusal === undefined ? {} : { errorDetail: { code: 13, message: refusal } };
    return this.request({ typeUrl: ASSIGNMENT_TYPE, responseNonce: nonce, ...errorDetail });
  }

  request(request: Request): this {
    return this.raw(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)));
  }

  raw(message: Uint8Array): this {
    this.#listener.message(message);
    return this;
  }

  /** Reads all that waits. */
  drain(): void {
    this.hasRoom = true;
    this.#listener.drained();
  }

  finish(): void {
    this.#listener.finished();
  }

  /** The connection breaks. */
  breakOff(): void {
    this.ended ??= { code: 'CANCELLED', message: '' };
    this.#listener.closed();
  }

  /** The names in each response; those that are removed have a minus. */
  get told(): readonly (readonly string[])[] {
    return this.responses.map(({ resources, removedResources }) => [
      ...resources.map(({ name }) => name),
      ...removedResources.map(name => `-${name}`),
    ]);
  }
}

function bytesOf(message: Bytes): Uint8Array {
  return message instanceof Uint8Array ? message : Buffer.concat(message);
}

function endpointsIn(value: Uint8Array): readonly string[] {
  const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, value);
  return endpoints.flatMap(({ lbEndpoints }) =>
    lbEndpoints.map(({ hostIdentifier, healthStatus }) => {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
      const socket = address?.case === 'socketAddress' ? address.value : undefined;
      const text = `${socket?.address}:${String(socket?.portSpecifier.value)}`;
      return healthStatus === 3 ? `${text} draining` : text;
    }),
  );
}
