import { KubeError } from './kube-error.ts';

const NEWLINE = 0x0a;

/** The lines of a body, in pieces as they came: each is copied once, when it is whole. */
export async function* linesOf(
  body: AsyncIterable<Buffer>,
  mostBytes: number,
  what: string,
): AsyncGenerator<string, void, undefined> {
  let pieces: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const last = chunk.subarray(start, end);
      start = end + 1;
      if (length + last.length > mostBytes) throw tooLong(mostBytes, what);
      yield pieces.length === 0 ? last.toString() : Buffer.concat([...pieces, last]).toString();
      [pieces, length] = [[], 0];
    }
    const rest = chunk.subarray(start);
    if (rest.length > 0) pieces.push(rest);
    length += rest.length;
    if (length > mostBytes) throw tooLong(mostBytes, what);
  }
  if (length > 0) throw new KubeError('Unreachable', `${what}: the answer ended in the middle of a line`);
}

function tooLong(mostBytes: number, what: string): KubeError {
  return new KubeError('Garbled', `${what}: a line has more than ${mostBytes} bytes`);
}
