import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { USED_FILE } from './locate.ts';
import type { LocatedPart } from './locate.ts';

const UNUSED_FOR_MS = 30 * 24 * 60 * 60 * 1000;

/** Removes other versions of the parts that have not been used for 30 days; returns their names. */
export function sweep(cache: string, located: readonly LocatedPart[], now: Date): readonly string[] {
  const current = new Set(located.map(({ folder }) => folder));
  const names = located.map(({ part }) => part.name).join('|');
  const isVersion = new RegExp(`^(${names})-[0-9a-f]+(\\.unfinished)?$`);
  return removeUnused(cache, name => isVersion.test(name) && !current.has(join(cache, name)), now);
}

/** Removes the folders of a cache that have not been used for 30 days, of those that a predicate accepts; returns their names. */
export function removeUnused(
  cache: string,
  isRemovable: (name: string) => boolean,
  now: Date,
): readonly string[] {
  const old = readdirSync(cache).filter(
    name => isRemovable(name) && now.getTime() - lastUse(join(cache, name)) > UNUSED_FOR_MS,
  );
  for (const name of old) rmSync(join(cache, name), { recursive: true, force: true });
  return old;
}

function lastUse(folder: string): number {
  const used = statSync(join(folder, USED_FILE), { throwIfNoEntry: false });
  return (used ?? statSync(folder)).mtimeMs;
}
