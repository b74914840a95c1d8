import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

/** Differs after each change of a file, unless it changes twice within one tick of the file system's clock. */
export type Stamp = string;

export type FileRead =
  | ({ readonly is: 'text'; readonly text: string; readonly hash: string } & Stamped)
  | { readonly is: 'missing' }
  | { readonly is: 'unreadable'; readonly why: string; readonly stamp: Stamp };

type Stamped = { readonly stamp: Stamp; /** By the clock of the file system. */ readonly changedMs: number };

/** Max bytes of a file. A Kubernetes object has at most 1.5 MB. */
export const MAX_BYTES = 8 * 1024 * 1024;

/** Reads a regular file of limited size; does not block on pipes and devices. */
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
  if (info.size > MAX_BYTES) return { is: 'unreadable', why: TOO_LARGE, stamp };
  const bytes = await file.readFile();
  const read = textIn(bytes);
  if ('why' in read) return { is: 'unreadable', ...read, stamp };
  const hash = createHash('sha256').update(bytes).digest('base64');
  return { is: 'text', ...read, hash, stamp, changedMs: info.ctimeMs };
}

/** The text of a file, or why it cannot be read. */
export type SourceText = { readonly text: string } | { readonly why: string };

/** Decodes UTF-8 of limited size. */
export function textIn(bytes: Uint8Array): SourceText {
  if (bytes.length > MAX_BYTES) return { why: TOO_LARGE };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch {
    return { why: 'is not UTF-8 text' };
  }
}

const TOO_LARGE = 'is larger than 8 MiB and was not read';

export function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): Stamp {
  return [dev, ino, size, mtimeMs, ctimeMs].join(':');
}

/** Why a file cannot be read, without its absolute path. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? (code || String(error));
}

const REASONS: Readonly<Partial<Record<string, string>>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its links form a cycle',
  ENAMETOOLONG: 'its name is too long',
  EMFILE: 'too many files are open in this process',
  ENFILE: 'too many files are open on this machine',
  ENOTDIR: 'it is not a folder',
};

/** Whether a file does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
