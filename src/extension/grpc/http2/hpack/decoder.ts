import { ConnectionError } from '../errors.ts';
import { fieldOf } from './field.ts';
import type { Field } from './field.ts';
import { decodeHuffman } from './huffman.ts';
import { FieldTable, TABLE_BYTES } from './table.ts';

/** The largest number that is read: nothing here is as long. */
const MOST_BITS = 21;

/** Reads the blocks of headers of a connection, in the order in which they come. */
export class HeaderDecoder {
  readonly #table = new FieldTable();
  #block: Buffer = Buffer.alloc(0);
  #at = 0;

  /** Hands each field of a block over; fails with a ConnectionError where it is none, for then nothing after it can be read. */
  decode(block: Buffer, take: (field: Field) => void): void {
    this.#block = block;
    this.#at = 0;
    this.#readSizes();
    while (this.#at < block.length) take(this.#readField());
    this.#block = Buffer.alloc(0);
  }

  /** The size of the table may change before the first field, and nowhere else. */
  #readSizes(): void {
    while (((this.#block[this.#at] ?? 0) & 0xe0) === 0x20) {
      const size = this.#readNumber(0x1f);
      if (size > TABLE_BYTES) throw wrong('a table is larger than it may be');
      this.#table.resize(size);
    }
  }

  #readField(): Field {
    const first = this.#block[this.#at] ?? 0;
    if (first & 0x80) return this.#fieldAt(this.#readNumber(0x7f));
    if ((first & 0xe0) === 0x20) throw wrong('a table changes its size within a block');
    const isKept = (first & 0x40) !== 0;
    const index = this.#readNumber(isKept ? 0x3f : 0x0f);
    const name = index === 0 ? this.#readText() : this.#fieldAt(index).name;
    const field = fieldOf(name, this.#readText());
    if (isKept) this.#table.add(field);
    return field;
  }

  #fieldAt(index: number): Field {
    const field = this.#table.at(index);
    if (!field) throw wrong('an index has no field');
    return field;
  }

  /** A number fills the bits of the mask, or all of them are set and it goes on in bytes of seven bits each. */
  #readNumber(mask: number): number {
    let number = (this.#block[this.#at++] ?? 0) & mask;
    if (number < mask) return number;
    for (let shift = 0; shift <= MOST_BITS; shift += 7) {
      const byte = this.#block[this.#at++];
      if (byte === undefined) throw wrong('a number has no end');
      number += (byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    throw wrong('a number is too large');
  }

  #readText(): string {
    const isCoded = ((this.#block[this.#at] ?? 0) & 0x80) !== 0;
    if (this.#at >= this.#block.length) throw wrong('a text is missing');
    const length = this.#readNumber(0x7f);
    const from = this.#at;
    const to = from + length;
    if (to > this.#block.length) throw wrong('a text has no end');
    this.#at = to;
    if (!isCoded) return this.#block.toString('latin1', from, to);
    const text = decodeHuffman(this.#block, from, to);
    if (text === undefined) throw wrong('a text is not coded as it says');
    return text;
  }
}

function wrong(message: string): ConnectionError {
  return new ConnectionError('compression', message);
}
