/** `npm run synth [-- --check]`: writes dist/manifests from the defaults and dist/chart, or lists the files that differ. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { API_VERSION } from '../src/api/generated/kinds.ts';
import { readDocuments } from '../src/api/yaml-documents.ts';
import { chartFiles } from './chart/chart.ts';
import { readConfiguration } from './config.ts';
import { applyDrift, findDrift, findDriftOfAll, readDefinitions } from './folder.ts';
import type { Drift } from './folder.ts';
import type { Installation } from './generated/types.ts';
import { install } from './install.ts';
import type { Files, Manifest } from './install.ts';

const DEFINITIONS = 'dist/crds';

/** The files of a folder, and those that differ in it. */
type Target = { readonly folder: string; readonly files: Files; readonly drift: readonly Drift[] };

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const targets = await Promise.all([manifests(), chart()]);
  for (const { folder, files, drift } of targets) {
    if (!values.check) await Promise.all(drift.map(one => applyDrift(folder, one, files)));
    for (const { path, is } of drift)
      console.log(`  ${values.check ? `${folder}/${path} is ${is}` : `wrote ${folder}/${path} (was ${is})`}`);
  }
  const count = targets.reduce((sum, { files }) => sum + files.size, 0);
  const drifted = targets.reduce((sum, { drift }) => sum + drift.length, 0);
  console.log(`${count} files, ${drifted} ${values.check ? 'not as synthesized' : 'changed'}`);
  return values.check && drifted > 0 ? 1 : 0;
}

async function manifests(): Promise<Target> {
  const folder = 'dist/manifests';
  const { version } = await readPackage();
  const definitions = await readDefinitions(DEFINITIONS);
  const files = install({ installation: defaults(), version, definitions });
  return { folder, files, drift: await findDrift(folder, files) };
}

async function chart(): Promise<Target> {
  const folder = 'dist/chart';
  const [configuration, changelog] = await Promise.all(
    ['synth/config.json', 'CHANGELOG.md'].map(file => readFile(file, 'utf8')),
  );
  const definitions = await readDefinitions(DEFINITIONS);
  const release = {
    ...(await readPackage()),
    changelog: changelog ?? '',
    meshImage: defaults().meshPods.image,
    examples: await readExamples(),
  };
  const files = chartFiles(configuration ?? '', definitions, release);
  return { folder, files, drift: await findDriftOfAll(folder, files) };
}

/** The objects of our kinds in examples/cluster. */
async function readExamples(): Promise<readonly Manifest[]> {
  const folder = 'examples/cluster';
  const names = (await readdir(folder)).sort();
  const texts = await Promise.all(names.map(name => readFile(join(folder, name), 'utf8')));
  const objects = texts.flatMap(text =>
    readDocuments(text).documents.map(({ value }) => value as Manifest & Api),
  );
  return objects.filter(({ apiVersion }) => apiVersion === API_VERSION);
}

type Api = { readonly apiVersion: string };

type Package = { readonly version: string; readonly description: string; readonly license: string };

async function readPackage(): Promise<Package> {
  return JSON.parse(await readFile('package.json', 'utf8')) as Package;
}

function defaults(): Installation {
  const read = readConfiguration('');
  if (read.faults) throw new Error(`the defaults are wrong: ${read.faults.join('; ')}`);
  return read.installation;
}

process.exitCode = await main();
