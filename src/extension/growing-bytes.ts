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
