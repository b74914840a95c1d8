import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTimeOf } from '../start-time.ts';

/** How a waiting run learns of the one that it waits for. */
export type LockWait = { readonly stop: AbortSignal; readonly tellWaiting: (pid: number) => void };

/**
 * Waits until no other living process holds the lock, and gives the function that releases it, or nothing when told to
 * stop. The lock is a folder with a file for each process that wants it. Whoever finds itself alone after it wrote its
 * file has the lock, others step back and try again: two may both step back, but never both go on. The file of a dead
 * process counts for nothing and is removed.
 */
export async function takeLock(
  folder: string,
  { stop, tellWaiting }: LockWait,
): Promise<(() => void) | undefined> {
  mkdirSync(folder, { recursive: true });
  const own = nameOf(process.pid);
  const release = () => rmSync(join(folder, own), { force: true });
  let told: string | undefined;
  while (!stop.aborted) {
    writeFileSync(join(folder, own), '');
    const other = holdersIn(folder).find(name => name !== own);
    if (other === undefined) return release;
    release();
    if (other !== told) tellWaiting(pidOf(other));
    told = other;
    await sleep(100 + Math.random() * 400);
  }
  return undefined;
}

function holdersIn(folder: string): readonly string[] {
  return readdirSync(folder).filter(name => {
    const isAlive = nameOf(pidOf(name)) === name;
    if (!isAlive) rmSync(join(folder, name), { force: true });
    return isAlive;
  });
}

function pidOf(name: string): number {
  return Number.parseInt(name, 10);
}

/** The name of a process among the holders; empty for one that does not live. */
function nameOf(pid: number): string {
  const startTime = startTimeOf(pid);
  return startTime === undefined ? '' : `${pid}-${startTime}`;
}
