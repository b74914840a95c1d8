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

/** The type URL of the resources. */
export const ASSIGNMENT_TYPE = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';

type Request = MessageInitShape<typeof DeltaDiscoveryRequestSchema>;

/** An Envoy on one stream: it applies responses as the protocol specifies, and acknowledges only when a test does. */
export class Envoy implements ServerStream {
  readonly responses: DeltaDiscoveryResponse[] = [];
  /** Its state: the version of each cluster, and its endpoints as `address:port`, with `draining`. */
  readonly versions = new Map<string, string>();
  readonly endpoints = new Map<string, readonly string[]>();
  ended: GrpcStatus | undefined;
  /** What `send` returns: whether it can send more. */
  canSend = true;
  readonly #listener: StreamListener;

  constructor(methods: Methods) {
    const method = methods.get(DELTA_ENDPOINTS);
    if (method?.kind !== 'streaming') throw new Error('DeltaEndpoints is not served');
    this.#listener = method.open(this);
  }

  send(message: Bytes): boolean {
    if (this.ended) throw new Error('a message was sent after the end');
    const response = fromBinary(DeltaDiscoveryResponseSchema, bytesOf(message));
    this.responses.push(response);
    for (const { name, version, resource } of response.resources) {
      this.versions.set(name, version);
      this.endpoints.set(name, endpointsIn(resource?.value ?? new Uint8Array()));
    }
    // Envoy forgets the version of what is removed, and keeps its endpoints.
    for (const name of response.removedResources) this.versions.delete(name);
    return this.canSend;
  }

  end(status: GrpcStatus = { code: 'OK', message: '' }): void {
    this.ended = status;
    this.#listener.closed();
  }

  /** Sends the first request of the stream. */
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

  /** Acknowledges the last response, or rejects it with an error. */
  ack(error?: string): this {
    const nonce = this.responses.at(-1)?.nonce ?? '';
    const errorDetail = error === undefined ? {} : { errorDetail: { code: 13, message: error } };
    return this.request({ typeUrl: ASSIGNMENT_TYPE, responseNonce: nonce, ...errorDetail });
  }

  request(request: Request): this {
    return this.raw(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)));
  }

  raw(message: Uint8Array): this {
    this.#listener.message(message);
    return this;
  }

  /** Reads what was sent. */
  drain(): void {
    this.canSend = true;
    this.#listener.drained();
  }

  finish(): void {
    this.#listener.finished();
  }

  /** Disconnects. */
  disconnect(): void {
    this.ended ??= { code: 'CANCELLED', message: '' };
    this.#listener.closed();
  }

  /** The names in each response; removed ones are prefixed by a minus. */
  get pushed(): readonly (readonly string[])[] {
    return this.responses.map(({ resources, removedResources }) => [
      ...resources.map(({ name }) => name),
      ...removedResources.map(name => `-${name}`),
    ]);
  }
}

function bytesOf(message: Bytes): Uint8Array {
  return message instanceof Uint8Array ? message : Buffer.concat(message);
}

/** The endpoints in a ClusterLoadAssignment, as `address:port`, with `draining`. */
export function endpointsIn(value: Uint8Array): readonly string[] {
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
