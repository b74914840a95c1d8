import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import { FOLDERS, MARK } from './install.ts';
import type { Files } from './install.ts';

/** How a file on disk differs from the synthesized one. */
export type Drift = { readonly path: string; readonly is: 'missing' | 'different' | 'stale' };

/** The CRDs in a folder, in the order of their names. */
export async function readDefinitions(folder: string): Promise<readonly string[]> {
  const names = (await readdir(folder)).filter(name => name.endsWith('.yaml')).sort();
  return Promise.all(names.map(name => readFile(join(folder, name), 'utf8')));
}

/** The files that would be replaced though synth did not write them. */
export async function findForeignFiles(folder: string, files: Files): Promise<readonly string[]> {
  const texts = await Promise.all(
    [...files.keys()].map(path => readFile(join(folder, path), 'utf8').catch(() => undefined)),
  );
  return [...files.keys()].filter((_, index) => texts[index] !== undefined && !texts[index].startsWith(MARK));
}

/** The files of a folder that differ; of files that are not synthesized only those with the mark of synth count. */
export async function findDrift(folder: string, files: Files): Promise<readonly Drift[]> {
  return driftOf(folder, files, await readMarked(folder));
}

/** The files of a folder that differ, in which all files are synthesized. */
export async function findDriftOfAll(folder: string, files: Files): Promise<readonly Drift[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const present = entries
    .filter(entry => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  return driftOf(
    folder,
    files,
    present.map(path => relative(folder, path)),
  );
}

async function driftOf(folder: string, files: Files, present: readonly string[]): Promise<readonly Drift[]> {
  const wrong = await Promise.all(
    [...files].map(async ([path, text]): Promise<readonly Drift[]> => {
      const found = await readFile(join(folder, path), 'utf8').catch(() => undefined);
      if (found === undefined) return [{ path, is: 'missing' }];
      return found === text ? [] : [{ path, is: 'different' }];
    }),
  );
  const stale = present.filter(path => !files.has(path)).map(path => ({ path, is: 'stale' }) as const);
  return [...wrong.flat(), ...stale];
}

/** The files in a folder that synth wrote. */
export async function readMarked(folder: string): Promise<readonly string[]> {
  const found = FOLDERS.map(async inner => {
    const entries = await readdir(join(folder, inner), { withFileTypes: true }).catch(() => []);
    const files = entries.filter(entry => entry.isFile() && entry.name.endsWith('.yaml'));
    return files.map(({ name }) => join(inner, name));
  });
  const paths = (await Promise.all(found)).flat().sort();
  const texts = await Promise.all(paths.map(path => readFile(join(folder, path), 'utf8')));
  return paths.filter((_, index) => texts[index]?.startsWith(MARK));
}

/** Writes or removes one file. */
export async function applyDrift(folder: string, { path, is }: Drift, files: Files): Promise<void> {
  const target = join(folder, path);
  if (is === 'stale') return rm(target);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, files.get(path) ?? '');
}

/** What would change in a file, as `diff -u` and `git diff` print it. */
export async function diffOf(folder: string, { path, is }: Drift, files: Files): Promise<string> {
  const target = join(folder, path);
  const found = is === 'missing' ? '' : await readFile(target, 'utf8');
  const names = [is === 'missing' ? NO_FILE : target, is === 'stale' ? NO_FILE : target] as const;
  return createTwoFilesPatch(...names, found, files.get(path) ?? '', undefined, undefined, {
    headerOptions: FILE_HEADERS_ONLY,
  });
}

/** The name of a file that does not exist. */
const NO_FILE = '/dev/null';

const LARGEST_BYTES = 1024 * 1024;

/** The text of a file that a user names. */
export async function readText(file: string): Promise<string> {
  const found = await stat(file).catch(() => undefined);
  if (!found) throw new Error(`synth: ${file} does not exist`);
  if (!found.isFile()) throw new Error(`synth: ${file} is not a file`);
  if (found.size > LARGEST_BYTES) throw new Error(`synth: ${file} is larger than 1 MiB and was not read`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (error instanceof TypeError) throw new Error(`synth: ${file} is not UTF-8 text`, { cause: error });
    throw error;
  }
}
