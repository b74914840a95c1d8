import { closeSync, openSync, readSync } from 'node:fs';
import type { Gateway } from '../state.ts';

const REFUSED = 'error when reload resources';
const MOST_BYTES = 1 << 20;

/** Gives a function that gives what Envoy Gateway has refused since it was called last: until that is mended it reads nothing. */
export function followRefusals({ log }: Pick<Gateway, 'log'>): () => readonly string[] {
  let at = 0;
  let rest = '';
  return () => {
    const bytes = Buffer.alloc(MOST_BYTES);
    const file = openSync(log, 'r');
    try {
      const length = readSync(file, bytes, 0, MOST_BYTES, at);
      at += length;
      const lines = `${rest}${bytes.toString('utf8', 0, length)}`.split('\n');
      rest = lines.pop() ?? '';
      return lines.filter(line => line.includes(REFUSED)).map(reasonOf);
    } finally {
      closeSync(file);
    }
  };
}

/** The line ends with its fields, of which one says why. */
function reasonOf(line: string): string {
  const [, why] = /"error": ("(?:[^"\\]|\\.)*")/.exec(line) ?? [];
  return why === undefined ? line : String(JSON.parse(why));
}
