import { fromBinary } from '@bufbuild/protobuf';
import type { GrpcStatus } from '../grpc/method.ts';
import { DeltaDiscoveryRequestSchema } from '../proto/envoy/service/discovery/v3_pb.ts';
import type { DeltaDiscoveryRequest } from '../proto/envoy/service/discovery/v3_pb.ts';
import { ASSIGNMENT_TYPE } from './content.ts';

/** What an Envoy says: which clusters it follows, and what it made of what it was sent. */
export type EdsRequest = {
  /** Whose endpoints it wants; told once, in the first request. */
  readonly gateway: string;
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
  /** The version that it has of a cluster already. */
  readonly versionOf: (cluster: string) => string | undefined;
  readonly answer?: EdsAnswer;
};

/** What an Envoy made of a response; without a reason it took it. */
export type EdsAnswer = { readonly nonce: string; readonly refusal?: string };

/** A request that is taken, or the status with which its stream ends. */
export type Judged =
  | { readonly is: 'taken'; readonly request: EdsRequest }
  | { readonly is: 'refused'; readonly status: GrpcStatus };

/** So long a request may be: ten thousand names with their versions fit, and so does what an Envoy tells of itself. */
const MOST_BYTES = 4 * 1024 * 1024;

const LONGEST_NAME = 512;
const LONGEST_REFUSAL = 1024;

/** Reads a request and judges whether it can be followed; nothing that is given makes it throw. */
export function readRequest(message: Uint8Array, isFirst: 'first' | 'later'): Judged {
  if (message.length > MOST_BYTES) {
    return refused(`a request has ${message.length} bytes, and at most ${MOST_BYTES} are read`);
  }
  const request = decoded(message);
  return request ? judged(request, isFirst) : refused('a request is not a DeltaDiscoveryRequest');
}

/** What an Envoy tells of its build is long, and not kept. */
function decoded(message: Uint8Array): DeltaDiscoveryRequest | undefined {
  try {
    return fromBinary(DeltaDiscoveryRequestSchema, message, { readUnknownFields: false });
  } catch {
    return undefined;
  }
}

function judged(request: DeltaDiscoveryRequest, isFirst: 'first' | 'later'): Judged {
  const { node, typeUrl, resourceNamesSubscribe: subscribe, resourceNamesUnsubscribe: unsubscribe } = request;
  const gateway = node?.cluster ?? '';
  if (typeUrl !== '' && typeUrl !== ASSIGNMENT_TYPE) return refused(`only ${ASSIGNMENT_TYPE} is served here`);
  if (subscribe.some(name => name === '*' || name === '')) return refused(NO_WILDCARD);
  if (subscribe.some(name => name.length > LONGEST_NAME)) return refused('the name of a cluster is too long');
  if (isFirst === 'first') {
    if (gateway === '') return refused('the first request must carry node.cluster, which names the Gateway');
    if (gateway.length > LONGEST_NAME) return refused('node.cluster is too long');
    if (subscribe.length === 0) return refused(NO_WILDCARD);
  }
  const versions = isFirst === 'first' ? request.initialResourceVersions : {};
  const versionOf = (cluster: string) => (Object.hasOwn(versions, cluster) ? versions[cluster] : undefined);
  const answer = answerOf(request);
  return { is: 'taken', request: { gateway, subscribe, unsubscribe, versionOf, ...(answer && { answer }) } };
}

const NO_WILDCARD = 'there is no subscription to all clusters: name each of them in resource_names_subscribe';

function answerOf({ responseNonce: nonce, errorDetail }: DeltaDiscoveryRequest): EdsAnswer | undefined {
  if (nonce === '') return undefined;
  return errorDetail ? { nonce, refusal: errorDetail.message.slice(0, LONGEST_REFUSAL) } : { nonce };
}

function refused(message: string): Judged {
  return { is: 'refused', status: { code: 'INVALID_ARGUMENT', message } };
}
