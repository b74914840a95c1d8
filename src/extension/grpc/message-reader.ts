import type { Budget } from './budget.ts';
import { PREFIX_BYTES } from './framing.ts';
import { MessageBody } from './message-body.ts';
import type { Sieve, Streaming } from './method.ts';
import { GrpcError } from './status.ts';

/** What a reader works with. */
type ReaderParts = {
  readonly most: number;
  readonly budget: Budget;
  /** What is kept of messages that come in several pieces; all of them where it is missing. */
  readonly sieve?: Streaming['sieve'];
  /** Takes a message, which has its memory for itself. */
  readonly take: (message: Uint8Array) => void;
};

/** Puts messages together from pieces that are cut anywhere, and lent; fails with a GrpcError where they are none. */
export class MessageReader {
  readonly #parts: ReaderParts;
  #prefixBytes = 0;
  #size = 0;
  #come = 0;
  #body: MessageBody | undefined;
  #sieve: Sieve | undefined;
  #messages = 0;
  #seen: { readonly messages: number; readonly at: number } | undefined;

  constructor(parts: ReaderParts) {
    this.#parts = parts;
  }

  /** For how long, as far as has been looked, the same message has been unfinished. */
  unfinishedFor(now: number): number {
    if (!this.isWithin) this.#seen = undefined;
    else if (this.#seen?.messages !== this.#messages) this.#seen = { messages: this.#messages, at: now };
    return this.#seen ? now - this.#seen.at : 0;
  }

  /** Whether a part of a message is there that waits for the rest. */
  get isWithin(): boolean {
    return this.#prefixBytes > 0;
  }

  /** Reads the next piece. */
  read(piece: Uint8Array): void {
    let at = 0;
    while (at < piece.length) {
      if (this.#prefixBytes < PREFIX_BYTES) {
        this.#readPrefix(piece[at++] ?? 0);
        if (this.#prefixBytes < PREFIX_BYTES) continue;
        this.#judgeSize();
      }
      at = this.#readBody(piece, at);
    }
  }

  /** Lets go of what has come of a message. */
  drop(): void {
    this.#body?.drop();
    this.#body = undefined;
    this.#sieve = undefined;
    this.#prefixBytes = 0;
    this.#size = 0;
    this.#come = 0;
  }

  #readPrefix(byte: number): void {
    if (this.#prefixBytes++ > 0) this.#size = this.#size * 256 + byte;
    else if (byte === 1) throw new GrpcError('UNIMPLEMENTED', 'compressed messages are not understood');
    else if (byte !== 0) throw new GrpcError('INTERNAL', 'what was sent is not a message');
  }

  #judgeSize(): void {
    const { most } = this.#parts;
    if (this.#size <= most) return;
    throw new GrpcError('RESOURCE_EXHAUSTED', `a message of ${this.#size} bytes is larger than ${most}`);
  }

  /** Gives where the next message begins; a message that lies in one piece is copied from there. */
  #readBody(piece: Uint8Array, at: number): number {
    const end = Math.min(piece.length, at + this.#size - this.#come);
    const part = at === 0 && end === piece.length ? piece : piece.subarray(at, end);
    if (part.length === this.#size) {
      this.#emit(new Uint8Array(part));
    } else if (part.length > 0) {
      const body = this.#keep(part);
      if (this.#come === this.#size) this.#emit(body.whole());
    }
    return end;
  }

  #keep(part: Uint8Array): MessageBody {
    const { budget, sieve } = this.#parts;
    if (this.#come === 0) this.#sieve = sieve?.(this.#size);
    this.#come += part.length;
    const kept = this.#sieve ? this.#sieve.pass(part) : part;
    this.#body ??= new MessageBody(budget, this.#sieve ? Infinity : this.#size);
    if (kept.length > 0) this.#body.add(kept);
    return this.#body;
  }

  #emit(message: Uint8Array): void {
    this.#messages++;
    try {
      this.#parts.take(message);
    } finally {
      this.drop();
    }
  }
}
