import type { Socket } from 'node:net';
import { HEAD_BYTES, writeHead } from './frames.ts';
import type { FrameHead } from './frames.ts';

const CHUNK_BYTES = 16_384;

/** Up to this size it is cheaper to copy a piece than to write it by itself. */
const COPIED_BYTES = 4096;

/** What is to be written to a socket: gathered, and then handed over in one. */
export class Output {
  readonly #socket: Socket;
  #chunk: Buffer | undefined;
  /** The part of the chunk that is gathered now. */
  #from = 0;
  #to = 0;
  #pieces: Uint8Array[] = [];
  #bytesOfPieces = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** What waits here and in the socket. */
  get backlog(): number {
    return this.#bytesOfPieces + this.#to - this.#from + this.#socket.writableLength;
  }

  /** Adds the beginning of a frame. */
  head(head: FrameHead): void {
    const chunk = this.#room(HEAD_BYTES);
    writeHead(chunk, this.#to, head);
    this.#to += HEAD_BYTES;
  }

  /** Adds bytes, which must stay as they are: they may be copied, or not. */
  bytes(piece: Uint8Array): void {
    if (piece.length > COPIED_BYTES) {
      this.#seal();
      this.#push(piece);
      return;
    }
    this.#room(piece.length).set(piece, this.#to);
    this.#to += piece.length;
  }

  /** Hands over what was gathered. */
  flush(): void {
    this.#seal();
    const [first, ...others] = this.#pieces;
    if (!first) return;
    this.#pieces = [];
    this.#bytesOfPieces = 0;
    const socket = this.#socket;
    if (others.length > 0) socket.cork();
    socket.write(first);
    for (const piece of others) socket.write(piece);
    if (others.length > 0) socket.uncork();
    // The kernel has all of it, so that the memory can be used again.
    if (socket.writableLength === 0) this.#from = this.#to = 0;
  }

  #room(bytes: number): Buffer {
    if (this.#chunk && this.#to + bytes <= CHUNK_BYTES) return this.#chunk;
    this.#seal();
    this.#from = this.#to = 0;
    return (this.#chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES));
  }

  #seal(): void {
    if (!this.#chunk || this.#from === this.#to) return;
    this.#push(this.#chunk.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }

  #push(piece: Uint8Array): void {
    this.#pieces.push(piece);
    this.#bytesOfPieces += piece.length;
  }
}
