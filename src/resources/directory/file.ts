import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/** What differs whenever a file has changed, unless that was twice in one tick of the file system's clock. */
export type Stamp = string;

/** What came of reading a file. */
export type FileRead =
  | ({ readonly is: 'text'; readonly text: string; readonly hash: string } & Stamped)
  | { readonly is: 'missing' }
  | { readonly is: 'unreadable'; readonly why: string; readonly stamp: Stamp };

type Stamped = { readonly stamp: Stamp; /** By the clock of the file system. */ readonly changedMs: number };

/** An object can be 1.5 MB at most; a larger file is something else. */
const LARGEST_BYTES = 8 * 1024 * 1024;

/** Reads a file that may be anything by now: no pipe or device is waited for, and nothing is read that is too large. */
export async function readSource(path: string): Promise<FileRead> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return await readOpen(file);
  } catch (error) {
    if (isMissing(error)) return { is: 'missing' };
    return { is: 'unreadable', why: `cannot be read: ${reasonOf(error)}`, stamp: '' };
  } finally {
    await file?.close().catch(() => undefined);
  }
}

async function readOpen(file: FileHandle): Promise<FileRead> {
  const info = await file.stat();
  const stamp = stampOf(info);
  if (!info.isFile()) return { is: 'unreadable', why: 'is not a file', stamp };
  if (info.size > LARGEST_BYTES) return { is: 'unreadable', why: TOO_LARGE, stamp };
  const bytes = await file.readFile();
  const read = textIn(bytes);
  if ('why' in read) return { is: 'unreadable', ...read, stamp };
  const hash = createHash('sha256').update(bytes).digest('base64');
  return { is: 'text', ...read, hash, stamp, changedMs: info.ctimeMs };
}

/** What is in a source, or why it is not read. */
export type SourceText = { readonly text: string } | { readonly why: string };

/** The text of bytes that are not too many. */
export function textIn(bytes: Uint8Array): SourceText {
  if (bytes.length > LARGEST_BYTES) return { why: TOO_LARGE };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { why: 'is not UTF-8 text' };
  }
}

const TOO_LARGE = 'is larger than 8 MiB and was not read';

/** The stamp of a file. */
export function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): Stamp {
  return [dev, ino, size, mtimeMs, ctimeMs].join(':');
}

/** Why something cannot be read, in few words and without its whole path. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? (code || String(error));
}

const REASONS: Readonly<Partial<Record<string, string>>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its links go in a circle',
  ENAMETOOLONG: 'its name is too long',
  EMFILE: 'too many files are open in this process',
  ENFILE: 'too many files are open on this machine',
  ENOTDIR: 'it is not a folder',
};

/** Whether something does not exist, or no longer. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
