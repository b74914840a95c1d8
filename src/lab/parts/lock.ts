import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** How a waiting run learns of the one that it waits for. */
export type LockWait = { readonly stop: AbortSignal; readonly tellWaiting: (pid: number) => void };

/**
 * Waits until no other living process holds the lock, which is a folder with a file for each that wants it; gives the
 * function that releases it. Whoever finds itself alone after it wrote its file has the lock, others step back and try
 * again: two may both step back, but never both go on. The file of a dead process counts for nothing and is removed.
 */
export async function takeLock(folder: string, { stop, tellWaiting }: LockWait): Promise<() => void> {
  mkdirSync(folder, { recursive: true });
  const own = nameOf(process.pid);
  const release = () => rmSync(join(folder, own), { force: true });
  for (let told = 0; ;) {
    stop.throwIfAborted();
    writeFileSync(join(folder, own), '');
    const other = holdersIn(folder).find(name => name !== own);
    if (other === undefined) return release;
    release();
    const pid = pidOf(other);
    if (pid !== told) tellWaiting((told = pid));
    await sleep(100 + Math.random() * 400);
  }
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

/** The pid of a process and when it started: two processes never agree in both. Empty for one that does not live. */
function nameOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return `${pid}-${startTime}`;
  } catch {
    return '';
  }
}
