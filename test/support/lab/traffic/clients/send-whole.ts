import { Readable } from 'node:stream';
import type { Writable } from 'node:stream';

const PIECE_BYTES = 64 << 10;

/** Writes bytes in pieces, as fast as they are accepted, and ends the stream. */
export function sendWhole(bytes: Buffer, to: Writable): void {
  Readable.from(piecesOf(bytes), { objectMode: false }).pipe(to);
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}
