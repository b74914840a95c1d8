import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { Lines } from './client.ts';

/** The lines of a text, as they arrive. */
export function textLines(text: Readable, reset: () => void): Lines {
  const lines: AsyncIterator<string, undefined> = createInterface({ input: text })[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { done, value } = await lines.next();
      if (done === true) throw new Error('the lines ended');
      return value;
    },
    reset,
  };
}
