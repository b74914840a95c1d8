import { Departed } from './departed.ts';
import { ERROR_CODES } from './errors.ts';
import type { Http2Reason } from './errors.ts';
import { FRAMES, frameOf } from './frames.ts';
import type { Outbox } from './outbox.ts';
import { Stream } from './stream.ts';
import type { StreamCarrier } from './stream.ts';

/** The streams of a connection, from the first frame of each to its last. */
export class Streams implements StreamCarrier {
  readonly #outbox: Outbox;
  readonly #receivable: number;
  readonly #live = new Map<number, Stream>();
  readonly #departed = new Departed();
  #last = 0;
  readonly #closed: Stream[] = [];

  /** Of each stream so much may come before it is read. */
  constructor(outbox: Outbox, receivable: number) {
    this.#outbox = outbox;
    this.#receivable = receivable;
  }

  /** The number of the newest stream. */
  get last(): number {
    return this.#last;
  }

  get size(): number {
    return this.#live.size;
  }

  /** A stream that is not closed. */
  get(id: number): Stream | undefined {
    return this.#live.get(id);
  }

  all(): Iterable<Stream> {
    return this.#live.values();
  }

  /** Whether a stream has had no frame yet. */
  isIdle(id: number): boolean {
    return id > this.#last || id % 2 === 0;
  }

  /** Who closed a stream, where it was one of the last. */
  enderOf(id: number): ReturnType<Departed['enderOf']> {
    return this.#departed.enderOf(id);
  }

  /** A new stream. */
  open(id: number): Stream {
    this.#last = id;
    const windows = { receivable: this.#receivable, sendable: this.#outbox.windowOfStreams };
    const stream = new Stream(id, windows, this);
    this.#live.set(id, stream);
    return stream;
  }

  /** Refuses a stream that has not been opened. */
  refuse(id: number, reason: Http2Reason): void {
    this.#last = Math.max(this.#last, id);
    this.#departed.add(id, 'server');
    this.#outbox.control(frameOf(FRAMES.reset, 0, id, ERROR_CODES[reason]));
  }

  begin(stream: Stream, block: Uint8Array): void {
    this.#outbox.begin(stream, block);
  }

  offer(stream: Stream): void {
    this.#outbox.offer(stream);
  }

  reset(stream: Stream, reason: Http2Reason): void {
    this.#outbox.control(frameOf(FRAMES.reset, 0, stream.id, ERROR_CODES[reason]));
    this.#departed.add(stream.id, 'server');
    this.#close(stream, reason);
  }

  /** The caller has broken it off. */
  abandon(stream: Stream, code: number): void {
    this.#departed.add(stream.id, 'caller');
    this.#close(stream, code === ERROR_CODES.none ? 'none' : 'another');
  }

  /** The request is complete. */
  finish(stream: Stream): void {
    stream.isFinished = true;
    if (stream.isAnswered) this.#complete(stream);
    else stream.ears.finished();
  }

  /** The answer is complete. */
  answered(stream: Stream): void {
    if (stream.isFinished) this.#complete(stream);
  }

  /** The connection is no more. */
  breakAll(): void {
    for (const stream of this.#live.values()) this.#close(stream, 'another');
  }

  /** Tells those who listen which streams have closed. */
  tell(): void {
    const closed = this.#closed;
    let told = 0;
    try {
      for (; told < closed.length; told++) closed[told]?.ears.closed();
    } finally {
      closed.splice(0, told + 1);
    }
  }

  #complete(stream: Stream): void {
    this.#departed.add(stream.id, 'caller');
    this.#close(stream, undefined);
  }

  #close(stream: Stream, reason: Stream['brokenBy']): void {
    stream.isClosed = true;
    stream.brokenBy = reason;
    stream.drop();
    this.#live.delete(stream.id);
    this.#closed.push(stream);
  }
}
