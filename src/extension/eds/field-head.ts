import { WIRE_TYPES } from '../wire.ts';

/** What stands before the value of a field; a number that is a value is part of it. */
export type Head = { readonly number: number; readonly wireType: number; readonly valueBytes: number };

const LONGEST_VARINT = 10;

/** The head of a field, of which so much has come; odd where it is none that is read here. */
export function headIn(bytes: readonly number[]): Head | 'unfinished' | 'odd' {
  const tagEnd = endOfVarint(bytes, 0);
  if (tagEnd === undefined) return bytes.length < LONGEST_VARINT ? 'unfinished' : 'odd';
  const tag = valueOf(bytes.slice(0, tagEnd));
  const [number, wireType] = [Math.floor(tag / 8), tag % 8];
  if (tag < 8 || tag >= 2 ** 32) return 'odd';
  if (wireType === WIRE_TYPES.fixed64) return { number, wireType, valueBytes: 8 };
  if (wireType === WIRE_TYPES.fixed32) return { number, wireType, valueBytes: 4 };
  if (wireType !== WIRE_TYPES.varint && wireType !== WIRE_TYPES.bytes) return 'odd';
  const end = endOfVarint(bytes, tagEnd);
  if (end === undefined) return bytes.length < tagEnd + LONGEST_VARINT ? 'unfinished' : 'odd';
  if (wireType === WIRE_TYPES.varint) return { number, wireType, valueBytes: 0 };
  const valueBytes = valueOf(bytes.slice(tagEnd, end));
  return valueBytes < 2 ** 32 ? { number, wireType, valueBytes } : 'odd';
}

function endOfVarint(bytes: readonly number[], from: number): number | undefined {
  const last = bytes.findIndex((byte, at) => at >= from && byte < 128);
  return last < 0 ? undefined : last + 1;
}

function valueOf(varint: readonly number[]): number {
  return varint.reduceRight((value, byte) => value * 128 + (byte & 127), 0);
}
