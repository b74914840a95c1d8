import { gunzipSync } from 'node:zlib';

/** The fields of a profile that tests read, decoded without a library. */
export type ReadProfile = {
  readonly kinds: readonly string[];
  readonly samples: readonly ReadSample[];
  readonly defaultKind: string;
  readonly durationNs: number;
  readonly comments: readonly string[];
};

/** The functions of a stack, the innermost first, and one number for each kind. */
type ReadSample = { readonly stack: readonly ReadFrame[]; readonly values: readonly number[] };

type ReadFrame = { readonly name: string; readonly file: string; readonly line: number };

type Field = { readonly number: number; readonly value: bigint | Uint8Array };

/** Decodes a compressed profile by the field numbers of pprof's proto/profile.proto. */
export function readProfile(compressed: Uint8Array): ReadProfile {
  const fields = fieldsOf(gunzipSync(compressed));
  const texts = fields
    .filter(({ number }) => number === 6)
    .map(({ value }) => Buffer.from(bytes(value)).toString());
  const text = (index: number | undefined): string => texts[index ?? 0] ?? '';
  const functions = new Map(
    messages(fields, 5).map(one => [
      integer(one, 1),
      { name: text(integer(one, 2)), file: text(integer(one, 4)) },
    ]),
  );
  const locations = new Map(
    messages(fields, 4).map(one => {
      const [line = []] = messages(one, 4);
      const { name, file } = functions.get(integer(line, 1)) ?? { name: 'missing function', file: '' };
      return [integer(one, 1), { name, file, line: integer(line, 2) }];
    }),
  );
  return {
    kinds: messages(fields, 1).map(kind => `${text(integer(kind, 1))}/${text(integer(kind, 2))}`),
    samples: messages(fields, 2).map(sample => ({
      stack: integers(sample, 1).map(
        id => locations.get(id) ?? { name: 'missing location', file: '', line: 0 },
      ),
      values: integers(sample, 2),
    })),
    defaultKind: text(integer(fields, 14)),
    durationNs: integer(fields, 10),
    comments: integers(fields, 13).map(text),
  };
}

/** The sum of a kind of value over the samples in which the innermost call, or any call, has a name. */
export function valueAt(profile: ReadProfile, kind: string, name: string, where: 'top' | 'anywhere'): number {
  const index = profile.kinds.indexOf(kind);
  return profile.samples
    .filter(({ stack }) => (where === 'top' ? stack.slice(0, 1) : stack).some(frame => frame.name === name))
    .reduce((sum, { values }) => sum + (values[index] ?? 0), 0);
}

/** The function with the highest sum of a kind of value. */
export function topOf(profile: ReadProfile, kind: string): string | undefined {
  const names = new Set(profile.samples.flatMap(({ stack: [top] }) => (top ? [top.name] : [])));
  const byValue = [...names].map(name => [valueAt(profile, kind, name, 'top'), name] as const);
  return byValue.sort(([a], [b]) => b - a)[0]?.[1];
}

function fieldsOf(message: Uint8Array): readonly Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < message.length;) {
    const tag = varint(message, at);
    const [number, wire] = [Number(tag.value >> 3n), Number(tag.value & 7n)];
    const first = varint(message, tag.end);
    if (wire === 0) {
      fields.push({ number, value: first.value });
      at = first.end;
    } else if (wire === 2) {
      at = first.end + Number(first.value);
      if (at > message.length) throw new Error('a field ends behind its message');
      fields.push({ number, value: message.subarray(first.end, at) });
    } else throw new Error(`no profile has fields of wire type ${wire}`);
  }
  return fields;
}

function varint(from: Uint8Array, start: number): { readonly value: bigint; readonly end: number } {
  let value = 0n;
  for (let at = start; at < start + 10; at++) {
    const byte = from[at];
    if (byte === undefined) throw new Error('a number has no end');
    value |= BigInt(byte & 127) << BigInt(7 * (at - start));
    if (byte < 128) return { value, end: at + 1 };
  }
  throw new Error('a number is too long');
}

function bytes(value: bigint | Uint8Array): Uint8Array {
  if (typeof value === 'bigint') throw new Error('a number stands where a message should');
  return value;
}

function messages(fields: readonly Field[], number: number): readonly (readonly Field[])[] {
  return fields.filter(field => field.number === number).map(({ value }) => fieldsOf(bytes(value)));
}

/** The numbers of a field, packed or not. */
function integers(fields: readonly Field[], number: number): readonly number[] {
  return fields
    .filter(field => field.number === number)
    .flatMap(({ value }) => (typeof value === 'bigint' ? [Number(value)] : packed(value)));
}

function packed(value: Uint8Array): readonly number[] {
  const found: number[] = [];
  for (let at = 0; at < value.length;) {
    const { value: one, end } = varint(value, at);
    found.push(Number(one));
    at = end;
  }
  return found;
}

function integer(fields: readonly Field[], number: number): number {
  return integers(fields, number)[0] ?? 0;
}
