import { ConnectionError } from './errors.ts';
import { FLAGS } from './frames.ts';
import type { FrameHead } from './frames.ts';
import { HeaderDecoder } from './hpack/decoder.ts';
import { RequestFields } from './request-fields.ts';

/** The headers of a stream, complete. */
export type HeaderBlock = {
  readonly id: number;
  /** Whether nothing comes behind them. */
  readonly isLast: boolean;
  readonly fields: RequestFields;
};

/** A block may come in so many frames, and have so many times the bytes that its fields may have. */
const MOST_FRAMES = 32;
const MOST_TIMES = 2;

const PRIORITY_BYTES = 5;

/** A block of which not all frames have come. */
type Unfinished = {
  readonly id: number;
  readonly isLast: boolean;
  readonly fragments: Buffer[];
  bytes: number;
};

/** Puts the headers of streams together, which come in one frame or in several. */
export class HeaderBlocks {
  readonly #decoder = new HeaderDecoder();
  readonly #most: number;
  #unfinished: Unfinished | undefined;

  /** Fields of so many bytes are read; of more it is only told that they are too many. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Whether only the rest of a block may come. */
  get isWithin(): boolean {
    return this.#unfinished !== undefined;
  }

  /** The first frame of a block. */
  begin(head: FrameHead, payload: Buffer): HeaderBlock | undefined {
    const { id, flags } = head;
    const fragment = fragmentIn(head, payload);
    const isLast = (flags & FLAGS.endStream) !== 0;
    if (flags & FLAGS.endHeaders) return { id, isLast, fields: this.#decode(fragment) };
    this.#unfinished = { id, isLast, fragments: [Buffer.from(fragment)], bytes: fragment.length };
    return undefined;
  }

  /** A further frame of it. */
  add({ id, flags }: FrameHead, fragment: Buffer): HeaderBlock | undefined {
    const unfinished = this.#unfinished;
    if (unfinished?.id !== id) throw new ConnectionError('protocol', 'headers go on that have not begun');
    unfinished.fragments.push(Buffer.from(fragment));
    unfinished.bytes += fragment.length;
    if (unfinished.fragments.length > MOST_FRAMES || unfinished.bytes > MOST_TIMES * this.#most)
      throw new ConnectionError('calm', 'headers do not end');
    if ((flags & FLAGS.endHeaders) === 0) return undefined;
    this.#unfinished = undefined;
    return { id, isLast: unfinished.isLast, fields: this.#decode(Buffer.concat(unfinished.fragments)) };
  }

  #decode(block: Buffer): RequestFields {
    const fields = new RequestFields(this.#most);
    this.#decoder.decode(block, field => fields.add(field));
    return fields;
  }
}

/** The headers in a frame, without padding and priority. */
function fragmentIn({ id, flags }: FrameHead, payload: Buffer): Buffer {
  const isPadded = (flags & FLAGS.padded) !== 0;
  const hasPriority = (flags & FLAGS.priority) !== 0;
  const from = (isPadded ? 1 : 0) + (hasPriority ? PRIORITY_BYTES : 0);
  const padding = isPadded ? (payload[0] ?? 0) : 0;
  if (payload.length < from) throw new ConnectionError('frameSize', 'headers are too short');
  if (from + padding > payload.length)
    throw new ConnectionError('protocol', 'a padding is longer than its frame');
  if (hasPriority && dependencyIn(payload, isPadded ? 1 : 0) === id)
    throw new ConnectionError('protocol', 'a stream depends on itself');
  return payload.subarray(from, payload.length - padding);
}

/** The stream that another one depends on. */
export function dependencyIn(payload: Buffer, at: number): number {
  return payload.readUInt32BE(at) & 0x7fff_ffff;
}
