import { Readable } from 'node:stream';
import type { Writable } from 'node:stream';

const PIECE_BYTES = 64 << 10;

/** Writes bytes piece by piece, as fast as they are taken, and ends what they are written to. */
export function sendWhole(bytes: Buffer, to: Writable): void {
  Readable.from(piecesOf(bytes), { objectMode: false }).pipe(to);
}

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}
