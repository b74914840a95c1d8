import type { Http2Reason } from './errors.ts';
import { ReceiveWindow } from './receive-window.ts';

/** What is heard of a stream. */
export interface StreamEars {
  /** A part of the request; its memory is used again when this has returned. */
  data(piece: Buffer): void;
  /** The request is complete. */
  finished(): void;
  /** Some of what was written has been sent. */
  sent?(): void;
  /** Nothing more is heard or sent. It is told after whatever led to it has returned. */
  closed(): void;
}

/** A request and its answer, for those who answer it. */
export interface Http2Stream {
  /** Nothing can be sent any more, since one side has ended it before it was complete or both sides are done. */
  readonly isClosed: boolean;
  /** Whether the request is complete. */
  readonly isFinished: boolean;
  /** Whether headers have been sent. */
  readonly hasBegun: boolean;
  /** Why it was closed before it was complete. */
  readonly brokenBy: Http2Reason | 'another' | undefined;
  /** How many bytes were written that wait for the caller to take them. */
  readonly unsent: number;
  /** How many bytes the caller has taken. */
  readonly sent: number;
  /** Names who hears of it; to be called before the function to which it was handed returns. */
  listen(ears: StreamEars): void;
  /** Sends headers, as a block. */
  begin(block: Uint8Array): void;
  /** Sends data, as soon as the caller takes it; the memory must stay as it is. */
  write(pieces: readonly Uint8Array[]): void;
  /** Sends headers as a block, in front of which all data goes, and nothing after them. */
  end(block: Uint8Array): void;
  /** Breaks it off. */
  reset(reason: Http2Reason): void;
}

/** What a stream asks of its connection. */
export interface StreamCarrier {
  begin(stream: Stream, block: Uint8Array): void;
  offer(stream: Stream): void;
  reset(stream: Stream, reason: Http2Reason): void;
}

const DEAF: StreamEars = { data: ignore, finished: ignore, closed: ignore };

/** A stream as its connection has it: small, for there are thousands that only wait. */
export class Stream implements Http2Stream {
  readonly id: number;
  ears: StreamEars = DEAF;
  isClosed = false;
  isFinished = false;
  hasBegun = false;
  /** Whether the last frame of the answer has been sent. */
  isAnswered = false;
  /** Whether it stands in the row of those that have something to send. */
  isInRow = false;
  brokenBy: Http2Stream['brokenBy'];
  /** How much may come. */
  readonly window: ReceiveWindow;
  /** How much may be sent. */
  sendable: number;
  /** How many bytes of data must still come, where the request has said so. */
  announced: number | undefined;
  /** Headers that are to be sent behind the data. */
  trailers: Uint8Array | undefined;
  unsent = 0;
  sent = 0;
  #pieces: Uint8Array[] | undefined;
  /** How much of the first piece has been sent. */
  #offset = 0;
  readonly #carrier: StreamCarrier;

  constructor(
    id: number,
    windows: { readonly receivable: number; readonly sendable: number },
    carrier: StreamCarrier,
  ) {
    this.id = id;
    this.window = new ReceiveWindow(windows.receivable);
    this.sendable = windows.sendable;
    this.#carrier = carrier;
  }

  listen(ears: StreamEars): void {
    this.ears = ears;
  }

  begin(block: Uint8Array): void {
    if (this.isClosed || this.hasBegun) return;
    this.hasBegun = true;
    this.#carrier.begin(this, block);
  }

  write(pieces: readonly Uint8Array[]): void {
    if (this.isClosed || this.trailers || this.isAnswered) return;
    for (const piece of pieces) {
      if (piece.length === 0) continue;
      (this.#pieces ??= []).push(piece);
      this.unsent += piece.length;
    }
    this.#carrier.offer(this);
  }

  end(block: Uint8Array): void {
    if (this.isClosed || this.trailers || this.isAnswered) return;
    this.hasBegun = true;
    this.trailers = block;
    this.#carrier.offer(this);
  }

  reset(reason: Http2Reason): void {
    if (!this.isClosed) this.#carrier.reset(this, reason);
  }

  /** Takes the next bytes that are to be sent, of which there are so many, piece by piece. */
  take(bytes: number, write: (piece: Uint8Array) => void): void {
    const pieces = this.#pieces ?? [];
    this.unsent -= bytes;
    this.sent += bytes;
    let done = 0;
    for (let left = bytes; left > 0;) {
      const piece = pieces[done];
      if (!piece) return;
      const end = Math.min(piece.length, this.#offset + left);
      write(this.#offset === 0 && end === piece.length ? piece : piece.subarray(this.#offset, end));
      left -= end - this.#offset;
      this.#offset = end === piece.length ? 0 : end;
      if (end === piece.length) done++;
    }
    if (this.unsent === 0) this.#pieces = undefined;
    else pieces.splice(0, done);
  }

  /** Lets go of what has not been sent. */
  drop(): void {
    this.#pieces = undefined;
    this.trailers = undefined;
    this.unsent = 0;
  }
}

function ignore(): void {
  // Nobody listens yet.
}
