import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { stampOf } from './scan.ts';
import type { Stamp } from './scan.ts';
import { isMissing, reasonOf } from './disk.ts';

/** What came of reading a file. */
export type FileRead =
  | { readonly is: 'text'; readonly text: string; readonly hash: string; readonly stamp: Stamp }
  | { readonly is: 'gone' }
  | { readonly is: 'unreadable'; readonly why: string; readonly stamp: Stamp };

/** An object can be 1.5 MB at most; a larger file is something else. */
const LARGEST_BYTES = 8 * 1024 * 1024;

/** Reads a file that may be anything by now: no pipe or device is waited for, and no more than is allowed is read. */
export async function readSource(path: string): Promise<FileRead> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    return await readOpen(file);
  } catch (error) {
    if (isMissing(error)) return { is: 'gone' };
    return { is: 'unreadable', why: `cannot be read: ${reasonOf(error)}`, stamp: '' };
  } finally {
    await file?.close().catch(() => undefined);
  }
}

async function readOpen(file: FileHandle): Promise<FileRead> {
  const info = await file.stat();
  const stamp = stampOf(info);
  if (!info.isFile()) return { is: 'unreadable', why: 'is not a file', stamp };
  const bytes = await readBounded(file, info.size);
  if (!bytes) return { is: 'unreadable', why: 'is larger than 8 MiB and was not read', stamp };
  const hash = createHash('sha256').update(bytes).digest('base64');
  try {
    return { is: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes), hash, stamp };
  } catch {
    return { is: 'unreadable', why: 'is not UTF-8 text', stamp };
  }
}

/** All bytes, also of a file that grows meanwhile; nothing where there are too many. */
async function readBounded(file: FileHandle, size: number): Promise<Uint8Array | undefined> {
  if (size > LARGEST_BYTES) return undefined;
  let bytes = Buffer.allocUnsafe(size + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length);
    length += bytesRead;
    if (bytesRead === 0) return bytes.subarray(0, length);
    if (length > LARGEST_BYTES) return undefined;
    if (length === bytes.length) bytes = Buffer.concat([bytes, Buffer.allocUnsafe(bytes.length)]);
  }
}
