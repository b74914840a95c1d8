import type { Socket } from 'node:net';
import { ConnectionError } from './errors.ts';
import { FLAGS, FRAMES, MOST, MOST_FRAME_BYTES } from './frames.ts';
import { Output } from './output.ts';
import { USUAL_WINDOW } from './settings.ts';
import type { Stream } from './stream.ts';

/** Data waits in its streams while so much is on its way, so that it is bounded by what streams may hold. */
const MOST_BACKLOG = 262_144;

/** The largest frame that is sent for the window that a caller gives in passing. */
const SMALL_BYTES = 1024;

/** To whom it is told what was sent. */
type OutboxParts = {
  readonly socket: Socket;
  /** There is something to hand over. */
  readonly touched: () => void;
  /** The answer of a stream is complete. */
  readonly answered: (stream: Stream) => void;
  /** Data was sent for which a caller may well say that it has it. */
  readonly progressed: () => void;
};

/** All that is sent over a connection, in the order in which it may be. */
export class Outbox {
  readonly #parts: OutboxParts;
  readonly #output: Output;
  #sendable = USUAL_WINDOW;
  #windowOfStreams = USUAL_WINDOW;
  /** The streams that have data and a window for it. */
  #row: Stream[] = [];
  #sent: Stream[] = [];

  constructor(parts: OutboxParts) {
    this.#parts = parts;
    this.#output = new Output(parts.socket);
  }

  /** How much may be sent of a new stream. */
  get windowOfStreams(): number {
    return this.#windowOfStreams;
  }

  /** What has not reached the kernel. */
  get backlog(): number {
    return this.#output.backlog;
  }

  /** Sends a frame that waits for nothing. */
  control(frame: Uint8Array): void {
    this.#output.bytes(frame);
    this.#parts.touched();
  }

  /** Sends the headers before the data of a stream. */
  begin(stream: Stream, block: Uint8Array): void {
    this.#headers(stream, block, FLAGS.endHeaders);
  }

  /** Looks at what a stream has got to send. */
  offer(stream: Stream): void {
    this.#parts.touched();
    if (stream.unsent > 0) this.#line(stream);
    else if (stream.trailers) this.#end(stream, stream.trailers);
  }

  /** The caller takes more. */
  grant(bytes: number): void {
    if (this.#sendable + bytes > MOST)
      throw new ConnectionError('flowControl', 'a window grows beyond all bounds');
    this.#sendable += bytes;
    this.#parts.touched();
  }

  /** The caller takes more of one stream; false where that is more than there can be. */
  grantTo(stream: Stream, bytes: number): boolean {
    if (stream.sendable + bytes > MOST) return false;
    stream.sendable += bytes;
    if (stream.unsent > 0) this.#line(stream);
    this.#parts.touched();
    return true;
  }

  /** The caller has decided anew how much it takes of each stream. */
  changeWindow(window: number, streams: Iterable<Stream>): void {
    const more = window - this.#windowOfStreams;
    this.#windowOfStreams = window;
    for (const stream of streams) {
      if (!this.grantTo(stream, more))
        throw new ConnectionError('flowControl', 'windows grow beyond all bounds');
    }
  }

  /** Hands over all that can be sent now; gives the streams of which something was, and which want to hear of it. */
  flush(): readonly Stream[] {
    do {
      this.#sendRow();
      this.#output.flush();
    } while (this.#row.length > 0 && this.#hasRoom());
    const sent = this.#sent;
    if (sent.length > 0) this.#sent = [];
    return sent;
  }

  #hasRoom(): boolean {
    return this.#sendable > 0 && this.#output.backlog < MOST_BACKLOG;
  }

  /** Each stream of the row gets one frame, and then a place at the end where it has more. */
  #sendRow(): void {
    while (this.#row.length > 0 && this.#hasRoom()) {
      const row = this.#row;
      this.#row = [];
      for (const stream of row) {
        stream.isInRow = false;
        if (this.#hasRoom()) this.#sendFrame(stream);
        else this.#line(stream);
      }
    }
  }

  #line(stream: Stream): void {
    if (stream.isInRow || stream.sendable <= 0) return;
    stream.isInRow = true;
    this.#row.push(stream);
  }

  #sendFrame(stream: Stream): void {
    const bytes = Math.min(MOST_FRAME_BYTES, stream.unsent, stream.sendable, this.#sendable);
    if (bytes <= 0) return;
    this.#sendable -= bytes;
    stream.sendable -= bytes;
    this.#output.head({ bytes, type: FRAMES.data, flags: 0, id: stream.id });
    stream.take(bytes, piece => this.#output.bytes(piece));
    if (bytes >= SMALL_BYTES || stream.unsent === 0) this.#parts.progressed();
    if (stream.ears.sent) this.#sent.push(stream);
    if (stream.unsent > 0) this.#line(stream);
    else if (stream.trailers) this.#end(stream, stream.trailers);
  }

  #end(stream: Stream, block: Uint8Array): void {
    stream.trailers = undefined;
    stream.isAnswered = true;
    this.#headers(stream, block, FLAGS.endHeaders | FLAGS.endStream);
    this.#parts.answered(stream);
  }

  #headers({ id }: Stream, block: Uint8Array, flags: number): void {
    this.#output.head({ bytes: block.length, type: FRAMES.headers, flags, id });
    this.#output.bytes(block);
    this.#parts.touched();
  }
}
