import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceError } from '../resources.ts';

/** So often, and with such pauses, a lock is tried: a process that just ends may still hold it. */
const TRIES = 5;
const PAUSE_MS = 100;

/**
 * Takes a folder for this process alone and gives the function that releases it; fails while another living process of
 * this machine has it. The lock is a folder with a file for each that wants it: whoever finds itself alone after it
 * wrote its file has the lock, others step back. The file of a dead process counts for nothing.
 */
export async function takeLock(folder: string): Promise<() => Promise<void>> {
  const lock = join(folder, 'lock');
  await mkdir(lock, { recursive: true, mode: 0o700 });
  const own = `${process.pid}-${startTimeOf(process.pid) ?? ''}-${randomUUID()}`;
  const release = () => rm(join(lock, own), { force: true });
  let other: string | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await sleep(PAUSE_MS * (0.5 + Math.random()));
    await writeFile(join(lock, own), '');
    other = (await holdersIn(lock)).find(name => name !== own);
    if (other === undefined) return release;
    await release();
  }
  const message = `${folder} is in use by process ${Number.parseInt(other ?? '', 10)}: give each process a state folder of its own`;
  throw new ResourceError('Unavailable', message);
}

/** What else lies there is none of ours. */
const HOLDER = /^(?<pid>[1-9]\d*)-(?<started>\w*)-[-0-9a-f]{36}$/;

async function holdersIn(lock: string): Promise<readonly string[]> {
  const holders = (await readdir(lock)).filter(name => HOLDER.test(name));
  const dead = holders.filter(name => !isAlive(name));
  await Promise.all(dead.map(name => rm(join(lock, name), { force: true })));
  return holders.filter(name => !dead.includes(name));
}

function isAlive(name: string): boolean {
  const { pid, started } = HOLDER.exec(name)?.groups ?? {};
  return startTimeOf(Number(pid)) === started;
}

/**
 * When the kernel started a process, in clock ticks since boot, or nothing where no such process lives: two processes
 * never agree in both pid and start time. Where there is no /proc, all living processes have the same.
 */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? undefined : rest[18];
  } catch {
    return existsSync('/proc/self/stat') ? undefined : livingWithoutProc(pid);
  }
}

function livingWithoutProc(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
    return 'unknown';
  } catch {
    return undefined;
  }
}
