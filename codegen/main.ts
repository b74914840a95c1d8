/** `npm run generate [-- --check]`: writes what the schemas generate, or tells which files are not as they should be. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { CODE_FOLDER, CRD_FOLDER, generate } from './generate.ts';
import type { Outputs } from './generate.ts';
import { Refusal } from './refusal.ts';

const SCHEMA_FOLDER = 'schema';

/** What is wrong with a file on disk, or was. */
type Drift = { readonly path: string; readonly is: 'missing' | 'different' | 'stale' };

async function readFolder(folder: string): Promise<Outputs> {
  const names = await readdir(folder).catch(() => []);
  const texts = names.sort().map(async name => [name, await readFile(join(folder, name), 'utf8')] as const);
  return new Map(await Promise.all(texts));
}

/** The files of a folder by their path from the project's root. */
async function readTree(folder: string): Promise<readonly (readonly [string, string])[]> {
  return [...(await readFolder(folder))].map(([name, text]) => [`${folder}/${name}`, text] as const);
}

async function findDrift(outputs: Outputs): Promise<readonly Drift[]> {
  const present = new Map([...(await readTree(CODE_FOLDER)), ...(await readTree(CRD_FOLDER))]);
  const stale = [...present.keys()]
    .filter(path => !outputs.has(path))
    .map(path => ({ path, is: 'stale' }) as const);
  const wrong = [...outputs].flatMap(([path, text]): Drift[] => {
    if (!present.has(path)) return [{ path, is: 'missing' }];
    return present.get(path) === text ? [] : [{ path, is: 'different' }];
  });
  return [...wrong, ...stale];
}

async function mend({ path, is }: Drift, outputs: Outputs): Promise<void> {
  if (is === 'stale') return rm(path);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, outputs.get(path) ?? '');
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const outputs = await generate(await readFolder(SCHEMA_FOLDER), phase => console.log(`  ${phase}`));
  const drift = await findDrift(outputs);
  if (!values.check) await Promise.all(drift.map(one => mend(one, outputs)));
  for (const { path, is } of drift)
    console.log(values.check ? `  ${path} is ${is}` : `  wrote ${path} (was ${is})`);
  console.log(`${outputs.size} files, ${drift.length} ${values.check ? 'not as generated' : 'changed'}`);
  return values.check && drift.length > 0 ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
