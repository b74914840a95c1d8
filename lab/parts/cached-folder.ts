import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { takeLock } from '../process/lock.ts';
import { markUsed } from './locate.ts';
import { removeUnused } from './sweep.ts';

/** A folder of a cache that is made once for each key. */
export type CachedFolder = {
  readonly cache: string;
  readonly name: string;
  /** A hash of what it is made from, in hexadecimal digits. */
  readonly key: string;
  /** Fills an empty folder. */
  readonly make: (folder: string) => Promise<void>;
  readonly now: Date;
};

/**
 * Returns the path of a cached folder, which is made where it does not exist. Processes that make it wait for each other,
 * a folder that is not finished has another name, and folders with other keys that no run has used for 30 days are removed.
 */
export async function cachedFolder({ cache, name, key, make, now }: CachedFolder): Promise<string> {
  const folder = join(cache, `${name}-${key}`);
  if (!existsSync(folder)) {
    const release = await takeLock(join(cache, `${name}.lock`), {
      stop: new AbortController().signal,
      onWaiting: pid => console.error(`waiting for process ${pid}, which makes ${folder}`),
      purpose: folder,
    });
    try {
      if (!existsSync(folder)) await makeNow({ cache, name, make, now }, folder);
    } finally {
      release?.();
    }
  }
  markUsed({ folder }, now);
  return folder;
}

async function makeNow({ cache, name, make, now }: Omit<CachedFolder, 'key'>, folder: string): Promise<void> {
  // The lock keeps others from making one: what is there was left by a process that was killed.
  const isUnfinished = (entry: string) => entry.startsWith(`${name}.unfinished-`);
  for (const left of readdirSync(cache).filter(isUnfinished))
    rmSync(join(cache, left), { recursive: true, force: true });
  const isVersion = new RegExp(`^${name}-[0-9a-f]+$`);
  removeUnused(cache, entry => isVersion.test(entry), now);
  const unfinished = mkdtempSync(join(cache, `${name}.unfinished-`));
  try {
    await make(unfinished);
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw error;
  }
}
