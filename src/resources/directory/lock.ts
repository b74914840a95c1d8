import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceError } from '../resources.ts';

/** So often, and with such pauses, a lock is tried: a process that just ends may still hold it. */
const TRIES = 5;
const PAUSE_MS = 100;

/**
 * Takes a folder for this process alone and gives the function that releases it; fails while another living process of
 * this machine has it. The lock is a folder with a file for each that wants it: whoever finds itself alone after it
 * wrote its file has the lock, others step back. The file of a dead process counts for nothing:
 *
 *   written where pids mean the same                      dead unless a process has its pid and start time
 *   written in another container, on another machine,     dead when it has not been touched for a while: whoever
 *   or before this machine started                        has the lock touches its file all the time
 */
export async function takeLock(folder: string): Promise<() => Promise<void>> {
  const lock = join(folder, 'lock');
  await mkdir(lock, { recursive: true, mode: 0o700 });
  const here = placeOfProcess();
  const own = `${process.pid}-${startTimeOf(process.pid) ?? ''}-${here.boot}-${here.pids}-${randomUUID()}`;
  const release = () => rm(join(lock, own), { force: true });
  let other: string | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await sleep(PAUSE_MS * (0.5 + Math.random()));
    await writeFile(join(lock, own), '');
    other = (await holdersIn(lock, here)).find(name => name !== own);
    if (other === undefined) return keep(join(lock, own));
    await release();
  }
  throw new ResourceError('Unavailable', whyTaken(folder, join(lock, other ?? ''), here));
}

const TOUCH_EVERY_MS = 5_000;
const DEAD_AFTER_MS = 30_000;

/** Shows that we live, until the lock is released. */
function keep(file: string): () => Promise<void> {
  const touch = () => {
    const now = new Date();
    // A file that somebody removed cannot be touched: the journal tells when another has taken over.
    utimes(file, now, now).catch(() => undefined);
  };
  const timer = setInterval(touch, TOUCH_EVERY_MS).unref();
  return () => {
    clearInterval(timer);
    return rm(file, { force: true });
  };
}

function whyTaken(folder: string, path: string, here: ProcessPlace): string {
  const { pid = '', boot, pids } = HOLDER.exec(basename(path))?.groups ?? {};
  if (boot === here.boot && pids === here.pids)
    return `${folder} is in use by process ${pid}: give each process a state folder of its own`;
  return `${folder} is or was in use by process ${pid} of another container or machine: if that has ended, try again in ${DEAD_AFTER_MS / 1000} s or remove ${path}; if not, give each a state folder of its own`;
}

/** Where pids mean one thing: a machine from one start to the next, and a namespace on it. */
type ProcessPlace = { readonly boot: string; readonly pids: string };

/** Both are empty where there is no /proc. */
function placeOfProcess(): ProcessPlace {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replaceAll(/[^0-9a-f]/g, '');
    return { boot, pids: readlinkSync('/proc/self/ns/pid').replaceAll(/\D/g, '') };
  } catch {
    return { boot: '', pids: '' };
  }
}

/** What else lies there is none of ours. */
const HOLDER = /^(?<pid>[1-9]\d*)-(?<started>\w*)-(?<boot>[0-9a-f]*)-(?<pids>\d*)-[-0-9a-f]{36}$/;

async function holdersIn(lock: string, here: ProcessPlace): Promise<readonly string[]> {
  const holders = (await readdir(lock)).filter(name => HOLDER.test(name));
  const verdicts = await Promise.all(holders.map(name => isDead(lock, name, here)));
  const dead = holders.filter((_, at) => verdicts[at]);
  await Promise.all(dead.map(name => rm(join(lock, name), { force: true })));
  return holders.filter(name => !dead.includes(name));
}

async function isDead(lock: string, name: string, here: ProcessPlace): Promise<boolean> {
  const { pid, started, boot, pids } = HOLDER.exec(name)?.groups ?? {};
  if (boot === here.boot && pids === here.pids) return startTimeOf(Number(pid)) !== started;
  const touched = await stat(join(lock, name)).catch(() => undefined);
  return touched === undefined || Date.now() - touched.mtimeMs > DEAD_AFTER_MS;
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
