/**
 * Reads and edits the bytes of protobuf messages field by field, without decoding them: unknown fields, such as settings
 * newer than this code, pass through unchanged.
 */

/** The wire types of protobuf's encoding. Groups are deprecated and not supported. */
export const WIRE_TYPES = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const MAX_VARINT_BYTES = 10;

/** A field in a message: its tag begins at `start`, its value lies between `valueStart` and `end`. */
export type Field = {
  readonly number: number;
  readonly wireType: number;
  readonly start: number;
  readonly tagEnd: number;
  readonly valueStart: number;
  readonly end: number;
};

/** Iterates over the fields of a message; it is itself the current field, so that nothing is allocated per field. */
export class Fields implements Field {
  number = 0;
  wireType = 0;
  start = 0;
  tagEnd = 0;
  valueStart = 0;
  end: number;
  /** Whether iteration stopped at an invalid or truncated field. */
  isMalformed = false;
  readonly #bytes: Uint8Array;
  readonly #limit: number;
  #offset: number;

  constructor(bytes: Uint8Array, from = 0, to = bytes.length) {
    this.#bytes = bytes;
    this.#offset = from;
    this.#limit = to;
    this.end = from;
  }

  /** Advances to the next field; returns false at the end and at malformed bytes. */
  next(): boolean {
    if (this.isMalformed || this.end >= this.#limit) return false;
    this.start = this.end;
    this.#offset = this.start;
    const tag = this.#shortVarint();
    this.number = Math.floor(tag / 8);
    this.wireType = tag & 7;
    this.tagEnd = this.#offset;
    const end = tag < 8 ? -1 : this.#endOfValue();
    this.isMalformed = end < 0 || end > this.#limit;
    if (!this.isMalformed) this.end = end;
    return !this.isMalformed;
  }

  #endOfValue(): number {
    this.valueStart = this.#offset;
    switch (this.wireType) {
      case WIRE_TYPES.varint:
        return this.#endOfVarint();
      case WIRE_TYPES.fixed64:
        return this.#offset + 8;
      case WIRE_TYPES.fixed32:
        return this.#offset + 4;
      case WIRE_TYPES.bytes: {
        const length = this.#shortVarint();
        this.valueStart = this.#offset;
        return length < 0 ? -1 : this.#offset + length;
      }
      default:
        return -1;
    }
  }

  /** A varint below 2^32, or -1. */
  #shortVarint(): number {
    let value = 0;
    for (let shift = 1; shift <= 2 ** 28 && this.#offset < this.#limit; shift *= 128) {
      const byte = this.#bytes[this.#offset++] ?? 0;
      value += (byte & 127) * shift;
      if (byte < 128) return value < 2 ** 32 ? value : -1;
    }
    return -1;
  }

  #endOfVarint(): number {
    for (
      let offset = this.#offset;
      offset < this.#limit && offset < this.#offset + MAX_VARINT_BYTES;
      offset++
    ) {
      if ((this.#bytes[offset] ?? 0) < 128) return offset + 1;
    }
    return -1;
  }
}

/** Whether the bytes are a sequence of valid fields. */
export function isMessage(bytes: Uint8Array): boolean {
  const fields = new Fields(bytes);
  while (fields.next());
  return !fields.isMalformed;
}

/** The first `max` values of a length-delimited field; none if the message is malformed before the last of them. */
export function valuesOf(message: Uint8Array, number: number, max: number): readonly Uint8Array[] {
  const fields = new Fields(message);
  const found: Uint8Array[] = [];
  while (found.length < max && nextOf(fields, number))
    found.push(message.subarray(fields.valueStart, fields.end));
  return fields.isMalformed ? [] : found;
}

/** The last value of a length-delimited field that satisfies the predicate: in protobuf, the last one wins. */
export function bytesOf(
  message: Uint8Array,
  number: number,
  matches?: (value: Uint8Array) => boolean,
): Uint8Array | undefined {
  const fields = new Fields(message);
  let [from, to] = [-1, -1];
  while (nextOf(fields, number)) {
    if (matches && !matches(message.subarray(fields.valueStart, fields.end))) continue;
    from = fields.valueStart;
    to = fields.end;
  }
  return fields.isMalformed || from < 0 ? undefined : message.subarray(from, to);
}

/** The message in a field; values of a repeated occurrence are merged by concatenation, as protobuf specifies. */
export function messageOf(message: Uint8Array, number: number): Uint8Array | undefined {
  const fields = new Fields(message);
  if (!nextOf(fields, number)) return undefined;
  const first = message.subarray(fields.valueStart, fields.end);
  if (!nextOf(fields, number)) return fields.isMalformed ? undefined : first;
  const buffer = new ByteBuffer(message.length);
  buffer.append(first);
  do buffer.append(message, fields.valueStart, fields.end);
  while (nextOf(fields, number));
  return fields.isMalformed ? undefined : buffer.bytes();
}

/** Advances to the next length-delimited field of a number; returns false if there is none. */
function nextOf(fields: Fields, number: number): boolean {
  while (fields.next()) if (fields.number === number && fields.wireType === WIRE_TYPES.bytes) return true;
  return false;
}

/** The string in a field; invalid UTF-8 becomes U+FFFD, which no name contains. */
export function textOf(message: Uint8Array, number: number): string | undefined {
  const found = bytesOf(message, number);
  return found && Buffer.from(found.buffer, found.byteOffset, found.length).toString();
}

/** Replaces each value of a length-delimited field by `change` of it; returns the message itself where all stay. */
export function mapField(
  message: Uint8Array,
  number: number,
  change: (value: Uint8Array) => Uint8Array,
): Uint8Array {
  const fields = new Fields(message);
  const parts: Uint8Array[] = [];
  let kept = 0;
  while (nextOf(fields, number)) {
    const value = message.subarray(fields.valueStart, fields.end);
    const changed = change(value);
    if (changed === value) continue;
    parts.push(message.subarray(kept, fields.start), bytesField(number, changed));
    kept = fields.end;
  }
  if (fields.isMalformed || parts.length === 0) return message;
  return concat([...parts, message.subarray(kept)]);
}

/** Encodes a length-delimited field: bytes, a string or a message. */
export function bytesField(number: number, value: Uint8Array): Uint8Array {
  const tag = number * 8 + WIRE_TYPES.bytes;
  const field = new Uint8Array(varintLength(tag) + varintLength(value.length) + value.length);
  field.set(value, writeVarint(value.length, field, writeVarint(tag, field, 0)));
  return field;
}

/** Encodes a varint. */
export function varint(value: number): readonly number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}

/** How many bytes a varint takes. */
export function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** Writes a varint; returns where it ends. */
export function writeVarint(value: number, to: Uint8Array, offset: number): number {
  let [rest, at] = [value, offset];
  for (; rest >= 128; rest = Math.floor(rest / 128)) to[at++] = (rest % 128) + 128;
  to[at++] = rest;
  return at;
}

/** Concatenates byte arrays. */
export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** A growing byte buffer. */
class ByteBuffer {
  #bytes: Uint8Array;
  #length = 0;

  /** `expected` is the initial capacity. */
  constructor(expected: number) {
    this.#bytes = new Uint8Array(expected);
  }

  /** Appends the bytes from `from` to `to`. */
  append(source: Uint8Array, from = 0, to = source.length): void {
    if (from >= to) return;
    const length = this.#length + to - from;
    if (length > this.#bytes.length) this.#grow(2 * length);
    this.#bytes.set(from === 0 && to === source.length ? source : source.subarray(from, to), this.#length);
    this.#length = length;
  }

  /** A view of the appended bytes. */
  bytes(): Uint8Array {
    return this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
  }

  #grow(size: number): void {
    const grown = new Uint8Array(size);
    grown.set(this.bytes());
    this.#bytes = grown;
  }
}

/** New fields of one number, and which existing values of that number they replace. */
export type Edit = {
  readonly number: number;
  readonly replaces: (value: Uint8Array) => boolean;
  readonly fields: readonly Uint8Array[];
};

/**
 * Applies edits, each for another field number. New fields are put at the first value that they replace, else before other
 * values of their number, else at the end. All other bytes are kept; a malformed message is returned unchanged.
 */
export function applyEdits(message: Uint8Array, edits: readonly Edit[]): Uint8Array {
  if (!isMessage(message)) return message;
  const offsets = edits.map(edit => offsetOf(message, edit));
  const added = edits.flatMap(({ fields }) => fields).reduce((sum, { length }) => sum + length, 0);
  const buffer = new ByteBuffer(message.length + added);
  const fields = new Fields(message);
  let kept = 0;
  while (fields.next()) {
    const index = edits.findIndex(({ number }) => number === fields.number);
    const edit = edits[index];
    if (!edit) continue;
    buffer.append(message, kept, fields.start);
    if (offsets[index] === fields.start) for (const field of edit.fields) buffer.append(field);
    kept = edit.replaces(message.subarray(fields.valueStart, fields.end)) ? fields.end : fields.start;
  }
  buffer.append(message, kept);
  for (const [index, edit] of edits.entries()) {
    if (offsets[index] === undefined) for (const field of edit.fields) buffer.append(field);
  }
  return buffer.bytes();
}

function offsetOf(message: Uint8Array, { number, replaces }: Edit): number | undefined {
  const fields = new Fields(message);
  let first: number | undefined;
  while (fields.next()) {
    if (fields.number !== number) continue;
    if (replaces(message.subarray(fields.valueStart, fields.end))) return fields.start;
    first ??= fields.start;
  }
  return first;
}

/** Sets a field to a single value. */
export function setField(message: Uint8Array, number: number, value: Uint8Array): Uint8Array {
  return applyEdits(message, [{ number, replaces: () => true, fields: [bytesField(number, value)] }]);
}

/** Replaces the last value of a field by `change` of it; a message without the field is returned unchanged. */
export function updateField(
  message: Uint8Array,
  number: number,
  change: (value: Uint8Array) => Uint8Array,
): Uint8Array {
  const value = bytesOf(message, number);
  return value ? setField(message, number, change(value)) : message;
}
