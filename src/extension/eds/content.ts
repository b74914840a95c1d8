import { createHash } from 'node:crypto';
import type { DescField } from '@bufbuild/protobuf';
import type { LoadAssignment } from '../../traffic/load-assignment.ts';
import { encode } from '../encode.ts';
import { encodeAssignment } from './envoy-endpoints.ts';
import { DeltaDiscoveryResponseSchema } from '../proto/envoy/service/discovery/v3_pb.ts';
import { bytesField, concat } from '../wire.ts';

/** The type of what is served. */
export const ASSIGNMENT_TYPE = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment';

/** An assignment as it is sent, made once for all streams. */
export type Content = {
  /** Tells contents apart: equal ones have equal versions in every process. */
  readonly version: string;
  /** A response that has this one resource and nothing else. */
  readonly part: Uint8Array;
};

/** What is sent of an assignment. */
export function contentOf(assignment: LoadAssignment): Content {
  const value = encodeAssignment(assignment);
  const version = createHash('sha256').update(value).digest('hex').slice(0, VERSION_LENGTH);
  const resource = { name: assignment.cluster, version, resource: { typeUrl: ASSIGNMENT_TYPE, value } };
  const part = encode(DeltaDiscoveryResponseSchema, { resources: [resource] });
  return { version, part };
}

const VERSION_LENGTH = 16;

/** A response of parts: messages that follow each other read as one, in which lists are joined. */
export function responseOf(
  contents: readonly Content[],
  removed: readonly string[],
  nonce: string,
): readonly Uint8Array[] {
  const rest = [TYPE_FIELD, textField(NONCE, nonce), ...removed.map(name => textField(REMOVED, name))];
  return [...contents.map(({ part }) => part), concat(rest)];
}

const { nonce: NONCE, removedResources: REMOVED, typeUrl: TYPE } = DeltaDiscoveryResponseSchema.field;
const TYPE_FIELD = textField(TYPE, ASSIGNMENT_TYPE);

function textField({ number }: DescField, text: string): Uint8Array {
  return bytesField(number, Buffer.from(text));
}
