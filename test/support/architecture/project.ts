import { readdirSync, readFileSync } from 'node:fs';
import { parseSource } from './source.ts';
import type { Source, TextFile } from './source.ts';

/** What the rules judge. */
export type Project = {
  /** The files of code, generated ones included. */
  readonly sources: readonly Source[];
  /** All text files that git does not ignore. */
  readonly texts: readonly TextFile[];
};

const CODE = /^(src|lab|codegen|synth|bench|test)\/.*\.[cm]?[jt]sx?$/;

/** Cases are data, even those that are TypeScript. */
const CASES = /^test\/(corpus|golden)\//;

/** Reads the project in the current folder. */
export function readProject(): Project {
  const ignored = ['.git/', ...readFileSync('.gitignore', 'utf8').split('\n').filter(Boolean)];
  const texts = pathsBelow('', ignored)
    .map(path => ({ path, text: readFileSync(path, 'utf8') }))
    .filter(({ text }) => !text.includes('\0'));
  const code = texts.filter(({ path }) => CODE.test(path) && !CASES.test(path));
  return { sources: code.map(({ path, text }) => parseSource(path, text)), texts };
}

function pathsBelow(folder: string, ignored: readonly string[]): readonly string[] {
  const entries = readdirSync(folder === '' ? '.' : folder, { withFileTypes: true });
  return entries.flatMap(entry => {
    const path = folder + entry.name;
    if (ignored.some(pattern => `/${path}/`.endsWith(`/${pattern}`))) return [];
    if (entry.isDirectory()) return pathsBelow(`${path}/`, ignored);
    return entry.isFile() ? [path] : [];
  });
}
