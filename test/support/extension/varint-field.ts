import { varint, WIRE_TYPES } from '../../../src/extension/wire.ts';

/** A field that holds a number. */
export function varintField(number: number, value: number): Uint8Array {
  return Uint8Array.from([...varint(number * 8 + WIRE_TYPES.varint), ...varint(value)]);
}
