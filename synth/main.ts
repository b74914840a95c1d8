/** `npm run synth [-- --check]`: writes dist/manifests from the defaults, or lists the files that differ. */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { readConfiguration } from './config.ts';
import { findDrift, applyDrift, readDefinitions } from './folder.ts';
import { install } from './install.ts';

const FOLDER = 'dist/manifests';
const DEFINITIONS = 'dist/crds';

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
  const read = readConfiguration('');
  if (read.faults) throw new Error(`the defaults are wrong: ${read.faults.join('; ')}`);
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { readonly version: string };
  const { installation } = read;
  const files = install({ installation, version, definitions: await readDefinitions(DEFINITIONS) });
  const drift = await findDrift(FOLDER, files);
  if (!values.check) await Promise.all(drift.map(one => applyDrift(FOLDER, one, files)));
  for (const { path, is } of drift)
    console.log(`  ${values.check ? `${path} is ${is}` : `wrote ${path} (was ${is})`}`);
  console.log(`${files.size} files, ${drift.length} ${values.check ? 'not as synthesized' : 'changed'}`);
  return values.check && drift.length > 0 ? 1 : 0;
}

process.exitCode = await main();
