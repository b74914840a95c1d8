/** `npm run generate [-- --check]`: writes the generated files, or lists those that differ. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { CODE_FOLDER, CONFIGURATION_FOLDER, CRD_FOLDER, generate, PROTO_FOLDER } from './generate.ts';
import type { Outputs } from './generate.ts';
import { ProtoRefusal } from './protobuf/proto.ts';
import { Refusal } from './refusal.ts';

const SCHEMA_SOURCES = 'schema';
const PROTO_SOURCES = 'proto';
const CONFIGURATION_SOURCE = 'synth/config.json';
/** The pages that hold generated tables. */
const PAGES = ['docs/mesh-endpoints.md', 'docs/mesh-gateway.md', 'docs/reasons.md', 'docs/route-policy.md'];

/** How a file on disk differs from the generated one. */
type Drift = { readonly path: string; readonly is: 'missing' | 'different' | 'stale' };

/** The files of a folder and of those in it, by their path below it. */
async function readTree(folder: string): Promise<Outputs> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter(entry => entry.isFile());
  const paths = files.map(entry => relative(folder, join(entry.parentPath, entry.name))).sort();
  return new Map(
    await Promise.all(paths.map(async path => [path, await readFile(join(folder, path), 'utf8')] as const)),
  );
}

/** The files that were generated into a folder, by their path from the project's root. */
async function readGenerated(folder: string): Promise<readonly (readonly [string, string])[]> {
  return [...(await readTree(folder))].map(([path, text]) => [`${folder}/${path}`, text] as const);
}

async function readPages(): Promise<Outputs> {
  return new Map(await Promise.all(PAGES.map(async path => [path, await readFile(path, 'utf8')] as const)));
}

async function findDrift(outputs: Outputs, pages: Outputs): Promise<readonly Drift[]> {
  const folders = await Promise.all(
    [CODE_FOLDER, CONFIGURATION_FOLDER, CRD_FOLDER, PROTO_FOLDER].map(readGenerated),
  );
  const present = new Map([...folders.flat(), ...pages]);
  const stale = [...present.keys()]
    .filter(path => !outputs.has(path))
    .map(path => ({ path, is: 'stale' }) as const);
  const wrong = [...outputs].flatMap(([path, text]): Drift[] => {
    if (!present.has(path)) return [{ path, is: 'missing' }];
    return present.get(path) === text ? [] : [{ path, is: 'different' }];
  });
  return [...wrong, ...stale];
}

async function write({ path, is }: Drift, outputs: Outputs): Promise<void> {
  if (is === 'stale') return rm(path);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, outputs.get(path) ?? '');
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const [schemas, protos, pages] = await Promise.all([
    readTree(SCHEMA_SOURCES),
    readTree(PROTO_SOURCES),
    readPages(),
  ]);
  const inputs = { schemas, protos, pages, configuration: await readFile(CONFIGURATION_SOURCE, 'utf8') };
  const outputs = await generate(inputs, phase => console.log(`  ${phase}`));
  const drift = await findDrift(outputs, pages);
  if (!values.check) await Promise.all(drift.map(one => write(one, outputs)));
  for (const { path, is } of drift)
    console.log(values.check ? `  ${path} is ${is}` : `  wrote ${path} (was ${is})`);
  console.log(`${outputs.size} files, ${drift.length} ${values.check ? 'not as generated' : 'changed'}`);
  return values.check && drift.length > 0 ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Refusal || error instanceof ProtoRefusal)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
