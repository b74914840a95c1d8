import { KubeError } from './kube-error.ts';

/** A body as one text; fails with KubeError where it has more bytes than it may. */
export async function readAll(body: AsyncIterable<Buffer>, mostBytes: number, what: string): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > mostBytes) {
      throw new KubeError('Garbled', `${what}: the answer has more than ${mostBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}

const MOST_OF_START = 64 * 1024;

/** The beginning of a body that need not be whole; it ends with that. */
export async function readStart(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MOST_OF_START) break;
    }
  } catch {
    // What was read before is what there is.
  }
  return Buffer.concat(chunks, length).toString();
}
