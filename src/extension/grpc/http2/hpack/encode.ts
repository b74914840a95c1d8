import { STATIC_TABLE } from './static-table.ts';

/** Headers that are sent, whose names have no upper case and whose values are Latin-1. */
export type SentHeaders = Readonly<Record<string, string>>;

/** Headers as a block, which is the same for every connection: none of it refers to what was sent before. */
export function encodeHeaders(headers: SentHeaders): Buffer {
  return Buffer.concat(Object.entries(headers).map(([name, value]) => encodeField(name, value)));
}

function encodeField(name: string, value: string): Buffer {
  const whole = STATIC_TABLE.findIndex(field => field[0] === name && field[1] === value) + 1;
  if (whole > 0) return encodeNumber(0x80, 0x7f, whole);
  const index = STATIC_TABLE.findIndex(field => field[0] === name) + 1;
  const start = encodeNumber(0, 0x0f, index);
  return Buffer.concat(index > 0 ? [start, encodeText(value)] : [start, encodeText(name), encodeText(value)]);
}

function encodeText(text: string): Buffer {
  return Buffer.concat([encodeNumber(0, 0x7f, text.length), Buffer.from(text, 'latin1')]);
}

function encodeNumber(flags: number, mask: number, number: number): Buffer {
  if (number < mask) return Buffer.of(flags | number);
  const bytes = [flags | mask];
  let rest = number - mask;
  for (; rest >= 0x80; rest >>>= 7) bytes.push(0x80 | (rest & 0x7f));
  return Buffer.from([...bytes, rest]);
}
