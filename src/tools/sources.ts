import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { arrayBuffer as readAll } from 'node:stream/consumers';
import { readSource, textIn } from '../files/file.ts';
import type { SourceText } from '../files/file.ts';

const STANDARD_INPUT = '-';

/** A file itself, or the YAML and JSON files below a folder, sorted; links are not followed. */
export async function findSources(path: string): Promise<readonly string[]> {
  if (path === STANDARD_INPUT || !(await isFolder(path))) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const isHidden = entry.name.startsWith('.') || entry.name === 'node_modules';
    if (entry.isDirectory() && !isHidden) found.push(...(await findSources(join(path, entry.name))));
    if (entry.isFile() && /\.(ya?ml|json)$/.test(entry.name)) found.push(join(path, entry.name));
  }
  return found;
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new Error(`${path} does not exist`);
    throw error;
  }
}

/** The text of a file, or of standard input. */
export async function readText(name: string): Promise<SourceText> {
  if (name === STANDARD_INPUT) return textIn(new Uint8Array(await readAll(process.stdin)));
  const read = await readSource(name);
  return read.is === 'missing' ? { why: 'no longer exists' } : read;
}

/** The files at these paths, each once, with their texts; fails with the first that cannot be read. */
export async function readFiles(
  paths: readonly string[],
): Promise<readonly { readonly name: string; readonly text: string }[]> {
  const names = new Set((await Promise.all(paths.map(findSources))).flat());
  return await Promise.all(
    [...names].map(async name => {
      const text = await readText(name);
      if ('why' in text) throw new Error(`${shownName(name)}: ${text.why}`);
      return { name: shownName(name), text: text.text };
    }),
  );
}

/** Control characters, which a terminal or a CI system could interpret. */
const CONTROL = /\p{Cc}/gu;

/** A text for a terminal. Names are what users wrote: none may move the cursor. */
export function plainText(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, '?');
}

/** The name of a file, for people. */
export function shownName(name: string): string {
  return name === STANDARD_INPUT ? 'standard input' : name.replaceAll(CONTROL, '?');
}
