import { fromBinary } from '@bufbuild/protobuf';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { GrpcError } from './status.ts';

/** Decoding costs a hundred times what it reads where fields are empty, so that what is far too long is not read. */
const MOST_BYTES = 64 * 1024;

/** Reads a request of which all that matters is short; fails with GrpcError where it is none. */
export function readSmallRequest<Desc extends DescMessage>(
  schema: Desc,
  bytes: Uint8Array,
): MessageShape<Desc> {
  if (bytes.length > MOST_BYTES) {
    throw new GrpcError('INVALID_ARGUMENT', `a ${schema.name} is not longer than ${MOST_BYTES} bytes`);
  }
  try {
    return fromBinary(schema, bytes, { readUnknownFields: false });
  } catch {
    throw new GrpcError('INVALID_ARGUMENT', `this is not a ${schema.name}`);
  }
}
