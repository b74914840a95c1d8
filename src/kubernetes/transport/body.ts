import { KubeError } from './transport.ts';

/** The text of a body; fails with KubeError where it has more than `maxBytes`. */
export async function readAll(body: AsyncIterable<Buffer>, maxBytes: number, what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes)
      throw new KubeError('Malformed', `${what}: the response has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}

const MAX_START_BYTES = 64 * 1024;

/** The beginning of a body, also of a broken one; the rest is discarded. */
export async function readStart(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MAX_START_BYTES) break;
    }
  } catch {
    // The beginning is enough.
  }
  return Buffer.concat(chunks, length).toString();
}

const NEWLINE = 0x0a;

/** The lines of a body as they arrive; the bytes of each are copied once. */
export async function* linesOf(
  body: AsyncIterable<Buffer>,
  maxBytes: number,
  what: string,
): AsyncGenerator<string, void, undefined> {
  let pieces: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const last = chunk.subarray(start, end);
      start = end + 1;
      if (length + last.length > maxBytes) throw tooLong(maxBytes, what);
      yield pieces.length === 0 ? last.toString() : Buffer.concat([...pieces, last]).toString();
      [pieces, length] = [[], 0];
    }
    const rest = chunk.subarray(start);
    if (rest.length > 0) pieces.push(rest);
    length += rest.length;
    if (length > maxBytes) throw tooLong(maxBytes, what);
  }
  if (length > 0) throw new KubeError('Unreachable', `${what}: the response ended in the middle of a line`);
}

function tooLong(maxBytes: number, what: string): KubeError {
  return new KubeError('Malformed', `${what}: a line has more than ${maxBytes} bytes`);
}
