import { ConnectionError } from './errors.ts';
import { FLAGS, FRAMES, HEAD_BYTES, MOST_FRAME_BYTES, readHead } from './frames.ts';
import type { FrameHead } from './frames.ts';

/** What is done with frames. Memory that is handed over is used again once the function has returned. */
export interface FrameSink {
  /** A frame that carries no data, whole. */
  frame(head: FrameHead, payload: Buffer): void;
  /** A frame with data begins. */
  dataBegins(head: FrameHead): void;
  /** A part of the data, without padding. */
  data(piece: Buffer): void;
  /** The frame with data is over. */
  dataEnds(head: FrameHead): void;
}

const EMPTY = Buffer.alloc(0);

/** Reads frames from pieces that are cut anywhere: data goes on as it comes, all else is put together. */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #headBytes = Buffer.alloc(HEAD_BYTES);
  #headFilled = 0;
  #head: FrameHead | undefined;
  #payload: Buffer | undefined;
  /** Of the payload of the frame that is being read. */
  #left = 0;
  #padding = 0;
  #isPaddingKnown = true;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Reads the next piece; fails with a ConnectionError, after which no more is to be read. */
  read(piece: Buffer): void {
    let at = 0;
    while (at < piece.length) {
      if (!this.#head) at = this.#readHead(piece, at);
      else if (this.#head.type === FRAMES.data) at = this.#readData(this.#head, piece, at);
      else at = this.#readPayload(this.#head, piece, at);
    }
  }

  #readHead(piece: Buffer, at: number): number {
    if (this.#headFilled === 0 && piece.length - at >= HEAD_BYTES) {
      this.#begin(readHead(piece, at));
      return at + HEAD_BYTES;
    }
    const copied = piece.copy(this.#headBytes, this.#headFilled, at);
    this.#headFilled += copied;
    if (this.#headFilled === HEAD_BYTES) {
      this.#headFilled = 0;
      this.#begin(readHead(this.#headBytes, 0));
    }
    return at + copied;
  }

  #begin(head: FrameHead): void {
    if (head.bytes > MOST_FRAME_BYTES) throw new ConnectionError('frameSize', 'a frame is too large');
    if (head.type !== FRAMES.data) {
      if (head.bytes === 0) this.#sink.frame(head, EMPTY);
      else this.#await(head);
      return;
    }
    const isPadded = (head.flags & FLAGS.padded) !== 0;
    if (isPadded && head.bytes === 0) throw new ConnectionError('frameSize', 'a padding has no length');
    this.#isPaddingKnown = !isPadded;
    this.#padding = 0;
    this.#sink.dataBegins(head);
    if (head.bytes === 0) this.#sink.dataEnds(head);
    else this.#await(head);
  }

  #await(head: FrameHead): void {
    this.#head = head;
    this.#left = head.bytes;
  }

  #readPayload(head: FrameHead, piece: Buffer, at: number): number {
    const end = Math.min(piece.length, at + this.#left);
    if (!this.#payload && end - at === head.bytes) {
      this.#head = undefined;
      this.#sink.frame(head, piece.subarray(at, end));
      return end;
    }
    const payload = (this.#payload ??= Buffer.allocUnsafeSlow(head.bytes));
    piece.copy(payload, head.bytes - this.#left, at, end);
    this.#left -= end - at;
    if (this.#left === 0) {
      this.#head = undefined;
      this.#payload = undefined;
      this.#sink.frame(head, payload);
    }
    return end;
  }

  #readData(head: FrameHead, piece: Buffer, from: number): number {
    const at = this.#isPaddingKnown ? from : this.#readPadding(piece, from);
    const end = Math.min(piece.length, at + this.#left);
    const endOfData = Math.min(end, at + this.#left - this.#padding);
    if (endOfData > at) this.#sink.data(piece.subarray(at, endOfData));
    this.#left -= end - at;
    if (this.#left === 0) {
      this.#head = undefined;
      this.#sink.dataEnds(head);
    }
    return end;
  }

  #readPadding(piece: Buffer, at: number): number {
    this.#isPaddingKnown = true;
    this.#padding = piece[at] ?? 0;
    this.#left--;
    if (this.#padding > this.#left)
      throw new ConnectionError('protocol', 'a padding is longer than its frame');
    return at + 1;
  }
}
