import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nearest } from '../src/api/validation/nearest.ts';
import { envoyGatewayValues } from './charts/envoy-gateway.ts';
import { readConfiguration } from './config.ts';
import {
  applyDrift,
  diffOf,
  findDrift,
  findForeignFiles,
  readDefinitions,
  readMarked,
  readText,
} from './folder.ts';
import type { Installation } from './generated/types.ts';
import { CHART_NAMES, DEFAULT_CHARTS, install, objectsText, pathsOf } from './install.ts';
import type { Files } from './install.ts';
import { runSynthPool } from './pool-command.ts';

/** What `mesh-gateway help synth` prints. */
export const SYNTH_HELP = `mesh-gateway synth [--config FILE] --out FOLDER [--only NAME,...]
                   [--check | --diff]
       mesh-gateway synth envoy-gateway-values [--config FILE]
                   [--namespace NAME]
       mesh-gateway synth pool --tailnet FILE [--address IP]
                   [--namespace NAME] [--config FILE]

Writes the manifests of an installation, as files to apply or to keep under
GitOps. With envoy-gateway-values, prints what the Helm chart of Envoy Gateway
needs, which is also in envoy-gateway/values.yaml and in the notes of our own
chart; --namespace is that of its release. With pool, prints the manifests of a
pool of mesh pods that you run yourself.

  --config FILE     the configuration; fields that it does not set have their
                    defaults. Its schema is synth/config.json of the package
  --out FOLDER      folder to write to; created if it does not exist. Files of
                    an earlier run that are no longer needed are removed. Files
                    that synth did not write are kept, and if one of them would
                    be replaced, nothing is written. With - the objects are
                    printed instead, without those of the folders monitoring and
                    envoy-gateway, unless --only names them
  --only NAME,...   write only these charts and keep the files of the others:
                    ${CHART_NAMES.slice(0, 4).join(', ')},
                    ${CHART_NAMES.slice(4, 7).join(', ')},
                    ${CHART_NAMES.slice(7).join(', ')}
  --check           write nothing, and print the files that differ
  --diff            write nothing, and print what would change in each file, as
                    git diff does

Of a pool:
  --tailnet FILE    a MeshTailnet; spec.pool has the settings of the pods
  --address IP      the address of the Service of the pool, which the printed
                    MeshTailnet has in spec.pool.addresses. Without it the
                    cluster chooses one, and no MeshTailnet is printed
  --namespace NAME  the namespace of the pods, mesh-pools by default. Before
                    they can join, each needs a Secret of its own name there
                    with a join key under authkey, such as meshd-example-0

Exit code: 0 if all files are written, or none differs; 1 if --check or --diff
has found a difference; 2 if the configuration or the command line is not valid,
and then nothing is written.
`;

/** Runs `mesh-gateway synth`; returns the exit code. */
export async function runSynth(args: readonly string[], version: string): Promise<number> {
  if (args[0] === 'pool') return await runSynthPool(args.slice(1));
  if (args[0] === 'envoy-gateway-values') return await printEnvoyGatewayValues(args.slice(1), version);
  const { values } = parseArgs({
    args: [...args],
    options: {
      config: { type: 'string' },
      out: { type: 'string' },
      only: { type: 'string' },
      check: { type: 'boolean', default: false },
      diff: { type: 'boolean', default: false },
    },
  });
  if (!/^[0-9]/.test(version)) throw new Error('synth: this has no version to install: run npm run build');
  const { config, out } = values;
  const isComparison = values.check || values.diff;
  if (out === undefined || out === '') throw new Error('synth: name the folder to write to: --out FOLDER');
  const only = chosenCharts(values.only);
  const installation = await readInstallation(config);
  if (!installation) return 2;
  const definitions = await readDefinitions(definitionsFolder());
  const options = { installation, version, definitions };
  if (out === '-') {
    const compares = values.check ? '--check' : '--diff';
    if (isComparison) throw new Error(`synth: ${compares} needs the folder to compare with: --out FOLDER`);
    process.stdout.write(objectsText(options, values.only === undefined ? DEFAULT_CHARTS : only));
    return 0;
  }
  await expectFolder(out);
  // Files of charts that were not chosen may still be needed.
  const others = async () => (await readMarked(out)).filter(path => !pathsOf(only).includes(path));
  const staying = values.only === undefined ? [] : await others();
  const files = install(options, only, staying);
  await expectNoForeignFiles(out, files);
  const drift = await findDrift(out, files);
  const wanted = drift.filter(({ path }) => !staying.includes(path) || files.has(path));
  if (isComparison) {
    for (const one of wanted)
      process.stdout.write(
        values.diff ? await diffOf(out, one, files) : `${join(out, one.path)} is ${one.is}\n`,
      );
    return wanted.length === 0 ? 0 : 1;
  }
  for (const one of wanted) await applyDrift(out, one, files);
  console.error(`${files.size} files, ${wanted.length} changed`);
  return 0;
}

/** The configuration in a file, or the defaults; undefined after printing what is not valid. */
async function readInstallation(config: string | undefined): Promise<Installation | undefined> {
  const read = readConfiguration(config === undefined ? '' : await readText(config));
  if (!read.faults) return read.installation;
  for (const fault of read.faults) console.error(`${config ?? 'the defaults'}: ${fault}`);
  return undefined;
}

async function printEnvoyGatewayValues(args: readonly string[], version: string): Promise<number> {
  const options = { config: { type: 'string' }, namespace: { type: 'string' } } as const;
  const { config, namespace } = parseArgs({ args: [...args], options }).values;
  const installation = await readInstallation(config);
  if (!installation) return 2;
  const placed = { ...installation, ...(namespace !== undefined && { namespace }) };
  process.stdout.write(envoyGatewayValues({ installation: placed, version }));
  return 0;
}

function chosenCharts(only: string | undefined): readonly string[] {
  if (only === undefined) return CHART_NAMES;
  const names = only.split(',').map(name => name.trim());
  const unknown = names.find(name => !CHART_NAMES.includes(name));
  if (unknown === undefined) return names;
  const meant = nearest(unknown, CHART_NAMES);
  const hint = meant === undefined ? `there are ${CHART_NAMES.join(', ')}` : `did you mean ${meant}?`;
  throw new Error(`synth: there is no part ${JSON.stringify(unknown.slice(0, 60))}; ${hint}`);
}

async function expectFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found && !found.isDirectory()) throw new Error(`synth: ${path} is there and is not a folder`);
}

async function expectNoForeignFiles(folder: string, files: Files): Promise<void> {
  const [foreignFile] = await findForeignFiles(folder, files);
  if (foreignFile === undefined) return;
  const path = join(folder, foreignFile);
  throw new Error(
    `synth: ${path} was not written by synth and would be lost: name another folder, or move it away`,
  );
}

/** The CRDs, which are beside this file once it is bundled, or in the project. */
function definitionsFolder(): string {
  const places = ['../dist/crds', '../../crds'].map(place => fileURLToPath(new URL(place, import.meta.url)));
  const found = places.find(place => existsSync(place));
  if (found === undefined)
    throw new Error('synth: the package is not whole: its folder dist/crds is missing');
  return found;
}
