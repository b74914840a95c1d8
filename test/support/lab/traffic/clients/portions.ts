import type { Readable } from 'node:stream';

/** How a stream of bytes ended: closed by its sender, or cut. */
export type Ending = 'whole' | 'cut';

/** The bytes of a stream, in portions of the requested size. */
export class Portions {
  readonly #stream: AsyncIterator<Buffer, undefined>;
  #held: Buffer[] = [];
  #size = 0;

  constructor(stream: Readable) {
    this.#stream = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  }

  /** The next bytes; throws if the stream ends before. */
  async take(size: number): Promise<Buffer> {
    while (this.#size < size) {
      const { done, value } = await this.#stream.next();
      if (done === true) throw new Error(`it ended ${size - this.#size} bytes too early`);
      this.#held.push(value);
      this.#size += value.length;
    }
    const all = Buffer.concat(this.#held);
    this.#held = [all.subarray(size)];
    this.#size -= size;
    return all.subarray(0, size);
  }

  /** The rest of the stream, and how it ended. */
  async rest(): Promise<{ readonly bytes: Buffer; readonly ending: Ending }> {
    try {
      for (;;) {
        const { done, value } = await this.#stream.next();
        if (done === true) return { bytes: Buffer.concat(this.#held), ending: 'whole' };
        this.#held.push(value);
      }
    } catch {
      return { bytes: Buffer.concat(this.#held), ending: 'cut' };
    }
  }
}
