import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../process/errors.ts';
import { PARTS } from './parts.ts';
import type { BinaryName, Part } from './parts.ts';
import { ask } from './needs.ts';
import { keyOf, versionOf } from './key.ts';

/** The variables of the environment that say where things are. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A part on this machine: where its declaration lies, and the folder in which it is, or will be once it is built. */
export type LocatedPart = {
  readonly part: Part;
  readonly source: string;
  readonly version: string;
  readonly folder: string;
};

/** The folder of all built parts, shared by all checkouts of a user. */
export function cacheFolder(environment: Environment): string {
  const cache = environment['XDG_CACHE_HOME'] || join(environment['HOME'] || homedir(), '.cache');
  return join(cache, 'mesh-gateway', 'parts');
}

function askGo(environment: Environment): readonly string[] | undefined {
  return ask(environment, 'go', 'env', 'GOVERSION', 'GOARCH');
}

const SOURCES = import.meta.dirname;

/** Where the parts are; without Go a place at which nothing is. */
export function locateParts(parts: readonly Part[], environment: Environment): readonly LocatedPart[] {
  const toolchain = { go: (askGo(environment) ?? []).join(' '), python: process.arch, npm: process.arch };
  return parts.map(part => {
    const source = join(SOURCES, part.name);
    const folder = join(
      cacheFolder(environment),
      `${part.name}-${keyOf(part, source, toolchain[part.from])}`,
    );
    return { part, source, version: versionOf(part, source), folder };
  });
}

/** Where a program of a part is once it is built. */
export function pathOf({ folder }: Pick<LocatedPart, 'folder'>, binary: string): string {
  return join(folder, 'bin', binary);
}

/** Whether all programs of a part are there. */
export function isBuilt(located: LocatedPart): boolean {
  return located.part.binaries.every(({ name }) => existsSync(pathOf(located, name)));
}

/** The file whose age says when a part was used last. */
export const USED_FILE = 'used';

/** Notes that a part is in use, so that its folder is kept; in a cache that cannot be written to, nothing is noted. */
export function markUsed({ folder }: Pick<LocatedPart, 'folder'>, now: Date): void {
  const file = join(folder, USED_FILE);
  try {
    writeFileSync(file, '');
    utimesSync(file, now, now);
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error))) throw error;
  }
}

/** The version of a program, as the declaration of its part names it. */
export function versionOfBinary(name: BinaryName): string {
  const part = PARTS.find(({ binaries }) => binaries.some(binary => binary.name === name));
  return part ? versionOf(part, join(SOURCES, part.name)) : '';
}

/**
 * Gives a function that tells where a program is: `locateBinaries(process.env)('tailscaled')`. It fails with the command
 * to run where the program has not been built yet, or with the PATH where Go, on which its place depends, is missing:
 * sudo has one of its own.
 */
export function locateBinaries(environment: Environment): (name: BinaryName) => string {
  const located = locateParts(PARTS, environment);
  return name => {
    const home = located.find(({ part }) => part.binaries.some(binary => binary.name === name));
    if (!home || !isBuilt(home)) {
      if (home?.part.from === 'go' && askGo(environment) === undefined)
        throw new Error(`${name} cannot be found: go does not answer; PATH is ${environment['PATH'] ?? ''}`);
      const option = home?.part.set === 'cluster' ? '' : ' -- --only lab';
      throw new Error(`${name} is not built yet: run npm run parts${option}`);
    }
    markUsed(home, new Date());
    return pathOf(home, name);
  };
}
