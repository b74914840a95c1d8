/** A field of a protobuf message as it was sent. */
export type Field = {
  readonly number: number;
  /** The bytes of the field, with its tag. */
  readonly raw: Buffer;
  /** The value, if it is bytes, a string or a message. */
  readonly value: Buffer;
};

const LENGTHS: Readonly<Record<number, number>> = { 1: 8, 5: 4 };

/** The fields of a message, in order; written independently of the reader that is tested. */
export function fieldsOf(message: Uint8Array): readonly Field[] {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const fields: Field[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = varint(bytes, at);
    const kind = tag.value & 7;
    const length = kind === 2 ? varint(bytes, tag.end) : { value: LENGTHS[kind] ?? 0, end: tag.end };
    const end = kind === 0 ? varint(bytes, tag.end).end : length.end + length.value;
    fields.push({
      number: tag.value >>> 3,
      raw: bytes.subarray(at, end),
      value: bytes.subarray(length.end, end),
    });
    at = end;
  }
  return fields;
}

function varint(bytes: Buffer, start: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let at = start; ; at += 1) {
    const byte = bytes[at] ?? 0;
    value += (byte & 0x7f) * 2 ** (7 * (at - start));
    if (byte < 0x80) return { value, end: at + 1 };
  }
}

/** The values of a field. */
export function valuesOf(message: Uint8Array, number: number): readonly Buffer[] {
  return fieldsOf(message)
    .filter(field => field.number === number)
    .map(({ value }) => value);
}

/** The text of a field, empty where it is absent. */
export function textIn(message: Uint8Array, number: number): string {
  return valuesOf(message, number)[0]?.toString() ?? '';
}
