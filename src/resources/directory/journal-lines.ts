import { createHash } from 'node:crypto';
import type { Key } from '../../api/key.ts';
import type { Kept } from '../lifecycle.ts';

/** What a line of the journal says: what is kept of an object from there on, or that nothing is. */
export type Entry = { readonly key: Key; readonly kept?: Kept };

/** What a journal says, line by line. */
export type Parsed = {
  readonly entries: readonly (Entry & { readonly bytes: number })[];
  /** Where the last whole line ends: what a crash cut short lies beyond. */
  readonly wholeBytes: number;
  /** Whether there is something that we did not write. */
  readonly isDamaged: boolean;
};

const VERSION = 1;

/** The first line. */
export const HEADER = `mesh-gateway resources ${VERSION}\n`;

/** The version of a journal that is ours but newer than what is read here. */
export function laterVersionOf(bytes: Buffer): number | undefined {
  const first = bytes.subarray(0, LONGEST_HEADER).toString('latin1');
  const version = Number(/^mesh-gateway resources ([1-9]\d{0,8})\n/.exec(first)?.[1]);
  return version > VERSION ? version : undefined;
}

const LONGEST_HEADER = 64;

/** A line, which begins with a hash of the rest. */
export function lineOf(entry: Entry): string {
  const text = JSON.stringify(entry);
  return `${hashOf(text)} ${text}\n`;
}

/** Reads all whole lines, also below a first one that is damaged; those that do not fit their hash are left out. */
export function parseLines(bytes: Buffer): Parsed {
  const isOurs = bytes.subarray(0, HEADER.length).toString() === HEADER;
  const entries: (Entry & { readonly bytes: number })[] = [];
  let [start, isDamaged] = isOurs ? [HEADER.length, false] : [0, true];
  for (let end = bytes.indexOf('\n', start); end >= 0; end = bytes.indexOf('\n', start)) {
    const entry = parseLine(bytes.subarray(start, end));
    if (entry) entries.push({ ...entry, bytes: end + 1 - start });
    else isDamaged = true;
    start = end + 1;
  }
  return { entries, wholeBytes: start, isDamaged };
}

function parseLine(line: Buffer): Entry | undefined {
  const text = line.subarray(HASH_LENGTH + 1);
  if (line.subarray(0, HASH_LENGTH).toString() !== hashOf(text)) return undefined;
  return JSON.parse(text.toString()) as Entry;
}

const HASH_LENGTH = 16;

function hashOf(text: string | Buffer): string {
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH);
}
