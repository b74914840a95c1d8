import type { Bytes } from './method.ts';

/** Each message has one byte that says whether it is compressed, and four that say how long it is. */
export const PREFIX_BYTES = 5;

/** A message up to this size is copied behind its prefix: that is cheaper than to write two pieces. */
const COPIED_BYTES = 32 * 1024;

/** How long a message is. */
export function sizeOf(message: Bytes): number {
  if (message instanceof Uint8Array) return message.length;
  return message.reduce((size, part) => size + part.length, 0);
}

/** A message as it is sent, in pieces. */
export function framed(message: Bytes): readonly Uint8Array[] {
  const size = sizeOf(message);
  const parts = message instanceof Uint8Array ? [message] : message;
  if (size > COPIED_BYTES) return [prefixed(size, PREFIX_BYTES), ...parts];
  const frame = prefixed(size, PREFIX_BYTES + size);
  let at = PREFIX_BYTES;
  for (const part of parts) {
    frame.set(part, at);
    at += part.length;
  }
  return [frame];
}

function prefixed(size: number, bytes: number): Buffer {
  const frame = Buffer.allocUnsafe(bytes);
  frame[0] = 0;
  frame.writeUInt32BE(size, 1);
  return frame;
}

/** The message without the memory around it, which would stay as long as the message does. */
export function detached(message: Uint8Array): Uint8Array {
  if (message.buffer.byteLength <= 2 * message.length) return message;
  return new Uint8Array(message);
}
