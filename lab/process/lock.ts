import { mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from './errors.ts';
import { startTimeOf } from './process-table.ts';

/** How a waiting run learns of the one that it waits for, and what it tells others that it is doing. */
export type LockWait = {
  readonly stop: AbortSignal;
  readonly tellWaiting: (pid: number) => void;
  readonly purpose?: string;
};

/** The process that has a lock, and what for. */
export type LockHolder = { readonly pid: number; readonly purpose: string };

/**
 * Waits until no other living process holds the lock, and gives the function that releases it, or nothing when told to
 * stop. The lock is a folder with a file for each process that wants it, and is gone when nobody does. Whoever finds
 * itself alone after it wrote its file has the lock, others step back and try again: two may both step back, but never
 * both go on. The file of a dead process counts for nothing and is removed.
 */
export async function takeLock(
  folder: string,
  { stop, tellWaiting, purpose = '' }: LockWait,
): Promise<(() => void) | undefined> {
  const own = nameOf(process.pid);
  const release = () => {
    rmSync(join(folder, own), { force: true });
    removeIfEmpty(folder);
  };
  let told: string | undefined;
  while (!stop.aborted) {
    if (claim(folder, own, purpose)) {
      for (const name of claimsIn(folder).filter(isDead)) rmSync(join(folder, name), { force: true });
      const other = claimsIn(folder).find(name => name !== own);
      if (other === undefined) return release;
      release();
      if (other !== told) tellWaiting(pidOf(other));
      told = other;
    }
    await sleep(100 + Math.random() * 400);
  }
  return undefined;
}

/** The living process that has a lock, or is about to. */
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

/** Someone else may be in it, or may have removed it. */
function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (error) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error;
  }
}

function orIfMissing<T>(look: () => T, otherwise: T): T {
  try {
    return look();
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

/** The name of a process among the holders; empty for one that does not live. */
function nameOf(pid: number): string {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? '' : `${pid}-${startTime}`;
}
