import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from './errors.ts';
import { startTimeOf } from './process-table.ts';

/** How to wait for a lock, and the purpose that other processes see. */
export type LockOptions = {
  readonly stop: AbortSignal;
  readonly onWaiting: (pid: number) => void;
  readonly purpose?: string;
};

/** The process that holds a lock, and its purpose. */
export type LockHolder = { readonly pid: number; readonly purpose: string };

/**
 * Waits until no other living process holds the lock, and returns the function that releases it, or undefined when
 * aborted. The lock is a folder with a file for each process that wants it. A process that is alone in it after writing
 * its file holds the lock; others remove their file and retry, so two may both retry but never both hold it. The
 * file of a dead process is removed.
 */
export async function takeLock(
  folder: string,
  { stop, onWaiting, purpose = '' }: LockOptions,
): Promise<(() => void) | undefined> {
  const own = nameOf(process.pid);
  const release = () => {
    rmSync(join(folder, own), { force: true });
    removeIfEmpty(folder);
  };
  let reported: string | undefined;
  while (!stop.aborted) {
    if (claim(folder, own, purpose)) {
      for (const name of claimsIn(folder).filter(isDead)) rmSync(join(folder, name), { force: true });
      const other = claimsIn(folder).find(name => name !== own);
      if (other === undefined) return release;
      release();
      if (other !== reported) onWaiting(pidOf(other));
      reported = other;
    }
    await sleep(100 + Math.random() * 400);
  }
  return undefined;
}

/** Waits until no other run of a kind by this user is in progress; returns the function that ends the turn. */
export async function takeTurn(folder: string): Promise<() => void> {
  const stop = new AbortController().signal;
  const onWaiting = (pid: number) => console.error(`waiting for process ${pid} to end`);
  const release = await takeLock(ofUser(folder), { stop, onWaiting });
  if (!release) throw new Error('the lock was not taken');
  return release;
}

/** Makes the next turn wait until this process has ended too, as one that cleans up after the run whose turn it is. */
export function shareTurn(folder: string, { pid }: { readonly pid: number }): void {
  claim(ofUser(folder), nameOf(pid), '');
}

function ofUser(folder: string): string {
  return `${folder}-${process.getuid?.() ?? ''}`;
}

/** The living process that holds a lock, or is about to. */
export function lockHolder(folder: string): LockHolder | undefined {
  const name = claimsIn(folder).find(claimed => !isDead(claimed));
  if (name === undefined) return undefined;
  return { pid: pidOf(name), purpose: orIfMissing(() => readFileSync(join(folder, name), 'utf8'), '') };
}

/** Fails where another process has just removed the folder, which it left last. */
function claim(folder: string, own: string, purpose: string): boolean {
  mkdirSync(folder, { recursive: true });
  return orIfMissing(() => {
    writeFileSync(join(folder, own), purpose);
    return true;
  }, false);
}

function claimsIn(folder: string): readonly string[] {
  return orIfMissing(() => readdirSync(folder), []);
}

/** Another process may have a file in it, or may have removed it. */
function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error;
  }
}

function orIfMissing<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return otherwise;
    throw error;
  }
}

function isDead(name: string): boolean {
  return nameOf(pidOf(name)) !== name;
}

function pidOf(name: string): number {
  return Number.parseInt(name, 10);
}

/** The file name of a process; empty for one that has ended. */
function nameOf(pid: number): string {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? '' : `${pid}-${startTime}`;
}
