/**
 * The bytes of protobuf messages, field by field and without decoding them. What is not understood stays as it is, so
 * that settings which are newer than this code pass through it.
 */

/** How the value of a field is written. Groups, which nobody has used in many years, are not read. */
export const WIRE_TYPES = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const LONGEST_VARINT = 10;

/** A field: it begins with its tag at `start`; its value is what lies between `valueStart` and `end`. */
export type Field = {
  readonly number: number;
  readonly wireType: number;
  readonly start: number;
  readonly tagEnd: number;
  readonly valueStart: number;
  readonly end: number;
};

/** Goes through the fields of a message, and is itself the one that it has come to. */
export class Fields implements Field {
  number = 0;
  wireType = 0;
  start = 0;
  tagEnd = 0;
  valueStart = 0;
  end: number;
  /** Whether what comes next is no field, or one that is cut off. */
  isBroken = false;
  readonly #bytes: Uint8Array;
  readonly #limit: number;
  #at: number;

  constructor(bytes: Uint8Array, from = 0, to = bytes.length) {
    this.#bytes = bytes;
    this.#at = from;
    this.#limit = to;
    this.end = from;
  }

  /** Goes to the next field; false at the end, and where the bytes are broken. */
  next(): boolean {
    if (this.isBroken || this.end >= this.#limit) return false;
    this.start = this.end;
    this.#at = this.start;
    const tag = this.#shortVarint();
    this.number = Math.floor(tag / 8);
    this.wireType = tag & 7;
    this.tagEnd = this.#at;
    const end = tag < 8 ? -1 : this.#endOfValue();
    this.isBroken = end < 0 || end > this.#limit;
    if (!this.isBroken) this.end = end;
    return !this.isBroken;
  }

  #endOfValue(): number {
    this.valueStart = this.#at;
    switch (this.wireType) {
      case WIRE_TYPES.varint:
        return this.#endOfVarint();
      case WIRE_TYPES.fixed64:
        return this.#at + 8;
      case WIRE_TYPES.fixed32:
        return this.#at + 4;
      case WIRE_TYPES.bytes: {
        const length = this.#shortVarint();
        this.valueStart = this.#at;
        return length < 0 ? -1 : this.#at + length;
      }
      default:
        return -1;
    }
  }

  /** A number below 2 to the 32nd, or -1. */
  #shortVarint(): number {
    let value = 0;
    for (let shift = 1; shift <= 2 ** 28 && this.#at < this.#limit; shift *= 128) {
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte & 127) * shift;
      if (byte < 128) return value < 2 ** 32 ? value : -1;
    }
    return -1;
  }

  #endOfVarint(): number {
    for (let at = this.#at; at < this.#limit && at < this.#at + LONGEST_VARINT; at++) {
      if ((this.#bytes[at] ?? 0) < 128) return at + 1;
    }
    return -1;
  }
}

/** Whether bytes can be read as a message, as far as this file reads. */
export function isMessage(bytes: Uint8Array): boolean {
  const fields = new Fields(bytes);
  while (fields.next());
  return !fields.isBroken;
}

/** The first values of a field that holds bytes, up to so many; none of a message that is broken before the last. */
export function valuesOf(message: Uint8Array, number: number, most: number): readonly Uint8Array[] {
  const fields = new Fields(message);
  const found: Uint8Array[] = [];
  while (found.length < most && nextOf(fields, number))
    found.push(message.subarray(fields.valueStart, fields.end));
  return fields.isBroken ? [] : found;
}

/** The value of a field that holds bytes: the last one, as protobuf has it, of those that are meant. */
export function bytesOf(
  message: Uint8Array,
  number: number,
  isMeant?: (value: Uint8Array) => boolean,
): Uint8Array | undefined {
  const fields = new Fields(message);
  let [from, to] = [-1, -1];
  while (nextOf(fields, number)) {
    if (isMeant && !isMeant(message.subarray(fields.valueStart, fields.end))) continue;
    from = fields.valueStart;
    to = fields.end;
  }
  return fields.isBroken || from < 0 ? undefined : message.subarray(from, to);
}

/** The message in a field: where it comes in several pieces, they are one, as protobuf has it. */
export function messageOf(message: Uint8Array, number: number): Uint8Array | undefined {
  const fields = new Fields(message);
  if (!nextOf(fields, number)) return undefined;
  const first = message.subarray(fields.valueStart, fields.end);
  if (!nextOf(fields, number)) return fields.isBroken ? undefined : first;
  const whole = new GrowingBytes(message.length);
  whole.add(first);
  do whole.add(message, fields.valueStart, fields.end);
  while (nextOf(fields, number));
  return fields.isBroken ? undefined : whole.whole();
}

/** Goes to the next field of a number that holds bytes; false where there is none. */
function nextOf(fields: Fields, number: number): boolean {
  while (fields.next()) if (fields.number === number && fields.wireType === WIRE_TYPES.bytes) return true;
  return false;
}

/** The text of a field; what is not UTF-8 in it becomes marks that no name has. */
export function textOf(message: Uint8Array, number: number): string | undefined {
  const found = bytesOf(message, number);
  return found && Buffer.from(found.buffer, found.byteOffset, found.length).toString();
}

/** A field that holds bytes or a message. */
export function bytesField(number: number, value: Uint8Array): Uint8Array {
  return joined([
    Uint8Array.from([...varint(number * 8 + WIRE_TYPES.bytes), ...varint(value.length)]),
    value,
  ]);
}

/** A number as protobuf writes it. */
export function varint(value: number): readonly number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
}

/** Parts as one. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Bytes that are put together of any number of parts, none of which is kept. */
export class GrowingBytes {
  #bytes: Uint8Array;
  #length = 0;

  /** Grows beyond what is expected where it must. */
  constructor(expected: number) {
    this.#bytes = new Uint8Array(expected);
  }

  /** Adds the bytes between two places. */
  add(source: Uint8Array, from = 0, to = source.length): void {
    if (from >= to) return;
    const length = this.#length + to - from;
    if (length > this.#bytes.length) this.#grow(2 * length);
    this.#bytes.set(from === 0 && to === source.length ? source : source.subarray(from, to), this.#length);
    this.#length = length;
  }

  /** All that was added. */
  whole(): Uint8Array {
    return this.#length === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#length);
  }

  #grow(size: number): void {
    const grown = new Uint8Array(size);
    grown.set(this.whole());
    this.#bytes = grown;
  }
}

/** Fields that come into a message, and which values of the same number go for them. */
export type Edit = {
  readonly number: number;
  readonly replaces: (value: Uint8Array) => boolean;
  readonly fields: readonly Uint8Array[];
};

/**
 * A message after edits, of which no two have the same number. New fields stand where the first of those stood that they
 * replace, else before others of their number, else at the end. All other bytes stay; a broken message stays whole.
 */
export function edited(message: Uint8Array, edits: readonly Edit[]): Uint8Array {
  if (!isMessage(message)) return message;
  const places = edits.map(edit => placeOf(message, edit));
  const added = edits.flatMap(({ fields }) => fields).reduce((sum, { length }) => sum + length, 0);
  const whole = new GrowingBytes(message.length + added);
  const fields = new Fields(message);
  let kept = 0;
  while (fields.next()) {
    const at = edits.findIndex(({ number }) => number === fields.number);
    const edit = edits[at];
    if (!edit) continue;
    whole.add(message, kept, fields.start);
    if (places[at] === fields.start) for (const field of edit.fields) whole.add(field);
    kept = edit.replaces(message.subarray(fields.valueStart, fields.end)) ? fields.end : fields.start;
  }
  whole.add(message, kept);
  for (const [at, edit] of edits.entries()) {
    if (places[at] === undefined) for (const field of edit.fields) whole.add(field);
  }
  return whole.whole();
}

function placeOf(message: Uint8Array, { number, replaces }: Edit): number | undefined {
  const fields = new Fields(message);
  let first: number | undefined;
  while (fields.next()) {
    if (fields.number !== number) continue;
    if (replaces(message.subarray(fields.valueStart, fields.end))) return fields.start;
    first ??= fields.start;
  }
  return first;
}

/** A message in which a field has one value. */
export function withField(message: Uint8Array, number: number, value: Uint8Array): Uint8Array {
  return edited(message, [{ number, replaces: () => true, fields: [bytesField(number, value)] }]);
}

/** A message in which the last value of a field is changed; one that lacks the field stays as it is. */
export function within(
  message: Uint8Array,
  number: number,
  change: (value: Uint8Array) => Uint8Array,
): Uint8Array {
  const value = bytesOf(message, number);
  return value ? withField(message, number, change(value)) : message;
}
