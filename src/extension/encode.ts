import { create, toBinary } from '@bufbuild/protobuf';
import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import type { Any, Duration } from '@bufbuild/protobuf/wkt';

/** Encodes a message. */
export function encode<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): Uint8Array {
  return toBinary(schema, create(schema, message));
}

/** Packs a message into google.protobuf.Any. */
export function pack<Desc extends DescMessage>(schema: Desc, message: MessageInitShape<Desc>): Any {
  return anyPack(schema, create(schema, message));
}

/** The type URL of a message in google.protobuf.Any. */
export function typeUrlOf({ typeName }: DescMessage): string {
  return `type.googleapis.com/${typeName}`;
}

/** A google.protobuf.Duration. */
export function durationOf(ms: number): Pick<Duration, 'seconds' | 'nanos'> {
  return { seconds: BigInt(Math.floor(ms / 1000)), nanos: Math.round((ms % 1000) * 1e6) };
}
