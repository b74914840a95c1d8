import type { Budget } from './budget.ts';
import { detached } from './framing.ts';
import { GrpcError } from './status.ts';

/** As long as little has come, memory is set aside for so many times what has come. */
const TIMES = 4;
const FIRST_BYTES = 1024;

/** Whoever has sent so much of a message means to send the rest: most that are large then fit without a further copy. */
const SERIOUS_BYTES = 64 * 1024;
const LARGE_BYTES = 4 * 1024 * 1024;

/** What has come of a message, copied into one piece of memory with room for more. */
export class MessageBody {
  readonly #budget: Budget;
  readonly #most: number;
  #room = new Uint8Array();
  #held = 0;
  #filled = 0;

  /** No more than `most` bytes are added to it. */
  constructor(budget: Budget, most: number) {
    this.#budget = budget;
    this.#most = most;
  }

  /** Adds a copy of a piece; fails with a GrpcError where there is no memory for it. */
  add(piece: Uint8Array): void {
    const filled = this.#filled + piece.length;
    if (filled > this.#held) this.#grow(filled);
    this.#room.set(piece, this.#filled);
    this.#filled = filled;
  }

  /** All of it in one, with not much room. */
  whole(): Uint8Array {
    return detached(this.#content);
  }

  /** Lets go of it. */
  drop(): void {
    this.#budget.give(this.#held);
    this.#held = 0;
    this.#room = new Uint8Array();
    this.#filled = 0;
  }

  get #content(): Uint8Array {
    return this.#room.subarray(0, this.#filled);
  }

  #grow(filled: number): void {
    const least = filled > SERIOUS_BYTES ? LARGE_BYTES : FIRST_BYTES;
    const bytes = Math.min(this.#most, Math.max(least, TIMES * filled));
    if (!this.#budget.take(bytes))
      throw new GrpcError('RESOURCE_EXHAUSTED', 'too many unfinished requests are held');
    const room = new Uint8Array(Buffer.allocUnsafeSlow(bytes).buffer);
    room.set(this.#content);
    this.#budget.give(this.#held);
    this.#held = bytes;
    this.#room = room;
  }
}
