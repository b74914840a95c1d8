import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from '../process/errors.ts';
import { binariesOf, PARTS, partsOf, setOf } from './parts.ts';
import type { Binary, BinaryName, Part, PartSet } from './parts.ts';
import { outputOf } from './needs.ts';
import { keyOf, versionOf } from './key.ts';

/** The environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A part on this machine: the folder that declares it, and the folder for its programs, built or not. */
export type LocatedPart = {
  readonly part: Part;
  /** The programs that are wanted of it, in the order in which they are built. */
  readonly binaries: readonly Binary[];
  readonly source: string;
  readonly version: string;
  readonly folder: string;
};

/** The folder of all built parts, shared by all checkouts of a user. */
export function cacheFolder(environment: Environment): string {
  const cache = environment['XDG_CACHE_HOME'] || join(environment['HOME'] || homedir(), '.cache');
  return join(cache, 'mesh-gateway', 'parts');
}

function goVersion(environment: Environment): readonly string[] | undefined {
  return outputOf(environment, 'go', 'env', 'GOVERSION', 'GOARCH');
}

const SOURCES = import.meta.dirname;

/** Locates the parts of a set, of which its programs are wanted; without Go, in folders that do not exist. */
export function locateParts(set: PartSet, environment: Environment): readonly LocatedPart[] {
  const toolchain = { go: (goVersion(environment) ?? []).join(' '), python: process.arch, npm: process.arch };
  return partsOf(set).map(part => {
    const source = join(SOURCES, part.name);
    const folder = join(
      cacheFolder(environment),
      `${part.name}-${keyOf(part, source, toolchain[part.from])}`,
    );
    return { part, binaries: binariesOf(part, set), source, version: versionOf(part, source), folder };
  });
}

/** The path of a program of a part. */
export function pathOf({ folder }: Pick<LocatedPart, 'folder'>, binary: string): string {
  return join(folder, 'bin', binary);
}

/** Whether all programs that are wanted of a part exist. */
export function isBuilt(located: LocatedPart): boolean {
  return missingOf(located).length === 0;
}

/** The programs that are wanted of a part and do not exist, in the order in which they are built. */
export function missingOf(located: LocatedPart): readonly Binary[] {
  return located.binaries.filter(({ name }) => !existsSync(pathOf(located, name)));
}

/** The file whose modification time is that of the last use. */
export const USED_FILE = 'used';

/** Marks a part as used, so that its folder is kept; without effect in a read-only cache. */
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
 * Returns a function from a program to its path: `locateBinaries(process.env)('tailscaled')`. It fails with the command
 * that builds the program, or with PATH where Go, whose version is part of the path, is not found: sudo changes PATH.
 */
export function locateBinaries(environment: Environment): (name: BinaryName) => string {
  const located = locateParts('cluster', environment);
  return name => {
    const home = located.find(({ part }) => part.binaries.some(binary => binary.name === name));
    const path = home && pathOf(home, name);
    if (!home || !path || !existsSync(path)) throw new Error(whyMissing(name, home?.part, environment));
    markUsed(home, new Date());
    return path;
  };
}

function whyMissing(name: BinaryName, part: Part | undefined, environment: Environment): string {
  if (part?.from === 'go' && goVersion(environment) === undefined)
    return `${name} cannot be found: go is not found; PATH is ${environment['PATH'] ?? ''}`;
  const binary = part?.binaries.find(one => one.name === name);
  const isInLab = part && binary && ['quickstart', 'lab'].includes(setOf(part, binary));
  return `${name} is not built yet: run npm run parts${isInLab ? ' -- --only lab' : ''}`;
}
