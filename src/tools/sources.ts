import { createReadStream } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { isMissing, MAX_BYTES, readSource, reasonOf, textIn } from '../files/file.ts';
import type { SourceText } from '../files/file.ts';
import { isReadByName, scan } from '../files/scan.ts';
import { plainText } from './plain-text.ts';

const STANDARD_INPUT = '-';

/** A file by its name for people, with its text, or why it cannot be read. */
type Source = { readonly name: string } & SourceText;

/**
 * Reads files, each once: those at these paths, standard input, and below a folder the files that standalone reads there. Fails
 * with a path at which there is nothing.
 */
export async function* readSources(paths: readonly string[]): AsyncGenerator<Source> {
  const found = new Map<string, Found>();
  for (const path of paths)
    for (const each of await findFiles(path)) {
      const key = each.path === STANDARD_INPUT ? each.path : resolve(each.path);
      if (!found.has(key)) found.set(key, each);
    }
  for (const { path, why } of found.values())
    yield { name: shownName(path), ...(why === undefined ? await readText(path) : { why }) };
}

type Found = { readonly path: string; readonly why?: string };

/** Files of other tools and their folders may be around: only what is endless is cut off. */
const BOUNDS = { files: 1_000_000, folders: 1_000_000, depth: 100, links: 4 };

async function findFiles(path: string): Promise<readonly Found[]> {
  if (path === STANDARD_INPUT || !(await isFolder(path))) return [{ path }];
  try {
    const { files, problems } = await scan(path, () => undefined, BOUNDS);
    const unread = await Promise.all(
      problems.map(async ({ file, text }) => {
        const where = join(path, file);
        return (await isUnrelatedLink(where)) ? [] : [{ path: where, why: text }];
      }),
    );
    return [...unread.flat(), ...[...files.keys()].sort().map(file => ({ path: join(path, file) }))];
  } catch (error) {
    return [{ path, why: `cannot be read: ${reasonOf(error)}` }];
  }
}

/** A link to nothing by the name of a folder, which build tools leave behind. */
async function isUnrelatedLink(path: string): Promise<boolean> {
  if (isReadByName(basename(path))) return false;
  return await lstat(path).then(
    found => found.isSymbolicLink(),
    () => false,
  );
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    const name = shownName(path);
    throw new Error(
      isMissing(error) ? `${name} does not exist` : `${name} cannot be read: ${reasonOf(error)}`,
    );
  }
}

async function readText(path: string): Promise<SourceText> {
  if (path === STANDARD_INPUT) return await readStream(process.stdin);
  // Such as <(kustomize build) of bash.
  const isStream = await stat(path).then(
    found => found.isFIFO() || found.isCharacterDevice(),
    () => false,
  );
  if (isStream) return await readStream(createReadStream(path));
  const read = await readSource(path);
  return read.is === 'missing' ? { why: 'no longer exists' } : read;
}

/** Reads no more than a file may have. */
async function readStream(stream: AsyncIterable<Uint8Array>): Promise<SourceText> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_BYTES) break;
  }
  return textIn(Buffer.concat(chunks));
}

/** The files at these paths with their texts; fails with the first that cannot be read. */
export async function readFiles(
  paths: readonly string[],
): Promise<readonly { readonly name: string; readonly text: string }[]> {
  const files: { readonly name: string; readonly text: string }[] = [];
  for await (const source of readSources(paths)) {
    if ('why' in source) throw new Error(`${source.name}: ${source.why}`);
    files.push({ name: source.name, text: source.text });
  }
  return files;
}

/** The name of a file, for people. */
function shownName(name: string): string {
  return name === STANDARD_INPUT ? 'standard input' : plainText(name).replaceAll('\n', '?');
}
