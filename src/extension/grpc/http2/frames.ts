/** The types of frames. */
export const FRAMES = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;

/** What their flags say. */
export const FLAGS = { ack: 1, endStream: 1, endHeaders: 4, padded: 8, priority: 0x20 } as const;

/** Each frame begins with three bytes of length, its type, its flags, and four bytes of the stream that it is about. */
export const HEAD_BYTES = 9;

/** Nobody is asked for larger frames, and nobody is sent any: more is never needed. */
export const MOST_FRAME_BYTES = 16_384;

/** The largest window, and the largest number of a stream. */
export const MOST = 0x7fff_ffff;

/** A frame of which all is known. */
export function frameOf(type: number, flags: number, id: number, ...words: readonly number[]): Buffer {
  const frame = Buffer.alloc(HEAD_BYTES + 4 * words.length);
  writeHead(frame, 0, { bytes: 4 * words.length, type, flags, id });
  for (const [at, word] of words.entries()) frame.writeUInt32BE(word, HEAD_BYTES + 4 * at);
  return frame;
}

/** The beginning of a frame. */
export type FrameHead = {
  readonly bytes: number;
  readonly type: number;
  readonly flags: number;
  readonly id: number;
};

/** Writes the beginning of a frame into memory. */
export function writeHead(into: Uint8Array, at: number, { bytes, type, flags, id }: FrameHead): void {
  into[at] = bytes >>> 16;
  into[at + 1] = bytes >>> 8;
  into[at + 2] = bytes;
  into[at + 3] = type;
  into[at + 4] = flags;
  into[at + 5] = id >>> 24;
  into[at + 6] = id >>> 16;
  into[at + 7] = id >>> 8;
  into[at + 8] = id;
}

/** Reads the beginning of a frame; the bit that has no meaning is left out. */
export function readHead(from: Uint8Array, at: number): FrameHead {
  const byte = (index: number): number => from[at + index] ?? 0;
  return {
    bytes: (byte(0) << 16) | (byte(1) << 8) | byte(2),
    type: byte(3),
    flags: byte(4),
    id: ((byte(5) & 0x7f) << 24) | (byte(6) << 16) | (byte(7) << 8) | byte(8),
  };
}
