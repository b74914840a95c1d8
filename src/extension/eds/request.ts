import { fromBinary } from '@bufbuild/protobuf';
import type { GrpcStatus } from '../grpc/method.ts';
import { DeltaDiscoveryRequestSchema } from '../proto/envoy/service/discovery/v3_pb.ts';
import type { DeltaDiscoveryRequest } from '../proto/envoy/service/discovery/v3_pb.ts';
import { ASSIGNMENT_TYPE } from './envoy-endpoints.ts';

/** A valid DeltaDiscoveryRequest. */
export type EdsRequest = {
  /** `node.cluster`, which names the Gateway that the Envoy serves; set in the first request of a stream only. */
  readonly gateway: string;
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** The version of a cluster in `initial_resource_versions`: the Envoy has it already. */
  readonly versionOf: (cluster: string) => string | undefined;
  readonly ack?: Ack;
};

/** The ACK of a response, or the NACK if it has an error. */
export type Ack = { readonly nonce: string; readonly error?: string };

/** A valid request, or the status with which the stream ends. */
export type ParsedRequest =
  | { readonly is: 'valid'; readonly request: EdsRequest }
  | { readonly is: 'invalid'; readonly status: GrpcStatus };

/** Enough for ten thousand names with versions, and for Envoy's description of its build. */
const MAX_BYTES = 4 * 1024 * 1024;

const MAX_NAME_LENGTH = 512;
const MAX_ERROR_LENGTH = 1024;

/** Parses and validates a request; it never throws. */
export function parseRequest(message: Uint8Array, position: 'first' | 'later'): ParsedRequest {
  if (message.length > MAX_BYTES) {
    return invalid(`the request has ${message.length} bytes, and the maximum is ${MAX_BYTES}`);
  }
  const request = decode(message);
  return request ? validate(request, position) : invalid('the message is not a DeltaDiscoveryRequest');
}

/** Envoy's description of its build is long, and not in our schema: it is dropped. */
function decode(message: Uint8Array): DeltaDiscoveryRequest | undefined {
  try {
    return fromBinary(DeltaDiscoveryRequestSchema, message, { readUnknownFields: false });
  } catch {
    return undefined;
  }
}

function validate(request: DeltaDiscoveryRequest, position: 'first' | 'later'): ParsedRequest {
  const { node, typeUrl, resourceNamesSubscribe: subscribe, resourceNamesUnsubscribe: unsubscribe } = request;
  const gateway = node?.cluster ?? '';
  if (typeUrl !== '' && typeUrl !== ASSIGNMENT_TYPE) return invalid(`only ${ASSIGNMENT_TYPE} is served`);
  if (subscribe.some(name => name === '*' || name === '')) return invalid(NO_WILDCARD);
  if (subscribe.some(name => name.length > MAX_NAME_LENGTH)) return invalid('a cluster name is too long');
  if (position === 'first') {
    if (gateway === '') return invalid('the first request must set node.cluster, which names the Gateway');
    if (gateway.length > MAX_NAME_LENGTH) return invalid('node.cluster is too long');
    if (subscribe.length === 0) return invalid(NO_WILDCARD);
  }
  const versions = position === 'first' ? request.initialResourceVersions : {};
  const versionOf = (cluster: string) => (Object.hasOwn(versions, cluster) ? versions[cluster] : undefined);
  const ack = ackOf(request);
  return { is: 'valid', request: { gateway, subscribe, unsubscribe, versionOf, ...(ack && { ack }) } };
}

const NO_WILDCARD = 'wildcard subscriptions are not supported: list each cluster in resource_names_subscribe';

function ackOf({ responseNonce: nonce, errorDetail }: DeltaDiscoveryRequest): Ack | undefined {
  if (nonce === '') return undefined;
  return errorDetail ? { nonce, error: errorDetail.message.slice(0, MAX_ERROR_LENGTH) } : { nonce };
}

function invalid(message: string): ParsedRequest {
  return { is: 'invalid', status: { code: 'INVALID_ARGUMENT', message } };
}
