/** `npm run parts [-- --only SET] [-- --list]`: builds the real parts that are missing into the user's cache folder. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheFolder, isBuilt, locateBinaries, locateParts, markUsed } from '../parts/locate.ts';
import type { LocatedPart } from '../parts/locate.ts';
import { PART_SETS } from '../parts/parts.ts';
import { testCommand } from '../parts/command.ts';
import { buildMissing } from '../parts/build-missing.ts';
import { missingToolsFor } from '../parts/needs.ts';
import { sweep } from '../parts/sweep.ts';
import { EXIT, runMain, stopOnSignals } from './run-main.ts';
import { Screen, standardOutput } from '../screen.ts';

const USAGE = `npm run parts [-- --only SET] [-- --list] [-- --test PART]

  --only quickstart   only what npm start runs
  --only lab          only what runs without root and without Kubernetes
  --only api          also what an API server without nodes needs
  --list              list what is built, and where, and build nothing
  --test PART         run the Go tests of one of our own programs, and build nothing else
`;

const environment = process.env;
const cache = cacheFolder(environment);

async function main(): Promise<number> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ options: { only: text, list: { type: 'boolean' }, test: text } });
  if (values.test !== undefined) return test(values.test);
  const set = PART_SETS.find(name => name === (values.only ?? 'cluster'));
  if (set === undefined) throw new Error(`unknown set "${values.only}"\n${USAGE}`);
  const wanted = locateParts(set, environment);
  if (values.list) return list(wanted);
  const missing = wanted.filter(located => !isBuilt(located));
  const lacks = missingToolsFor(missing, environment);
  for (const { what, line } of lacks) console.error(`${what} is missing: ${line}`);
  if (lacks.length > 0) return EXIT.notPossible;
  mkdirSync(cache, { recursive: true });
  const status = missing.length === 0 ? EXIT.done : await build(wanted);
  tidy();
  console.log(`${wanted.filter(isBuilt).length} of ${wanted.length} parts are built in ${cache}`);
  return status;
}

function list(wanted: readonly LocatedPart[]): number {
  for (const located of wanted) {
    const { part, version, folder } = located;
    const name = `${part.name} ${version}`.trimEnd().padEnd(24);
    console.log(`${name}${isBuilt(located) ? 'built   ' : 'missing '}${folder}`);
  }
  return EXIT.done;
}

async function build(wanted: readonly LocatedPart[]): Promise<number> {
  const stop = stopOnSignals();
  const left = await buildMissing(wanted, { environment, stop, screen: new Screen(standardOutput) });
  if (stop.aborted) return EXIT.interrupted;
  return left === 0 ? EXIT.done : EXIT.notDone;
}

/** Runs the tests of one of our own programs; those of the tailnet start the vendor's. */
function test(name: string): number {
  const tested = locateParts('cluster', environment).find(
    ({ part }) => part.name === name && part.from === 'go' && part.source === undefined,
  );
  if (!tested) throw new Error(`there is no Go program of our own with the name "${name}"\n${USAGE}`);
  const command = testCommand(tested.source);
  const vendors = dirname(locateBinaries(environment)('tailscaled'));
  const { status } = spawnSync(command.command, command.args, {
    cwd: command.folder,
    env: { ...environment, ...command.environment, TAILSCALE_BINARIES: vendors },
    stdio: 'inherit',
  });
  return status === 0 ? EXIT.done : EXIT.notDone;
}

/** Removes parts that no checkout has used for 30 days. */
function tidy(): void {
  const now = new Date();
  const all = locateParts('cluster', environment);
  for (const located of all.filter(isBuilt)) markUsed(located, now);
  for (const name of sweep(cache, all, now)) console.log(`removed ${name}: not used for 30 days`);
}

await runMain('parts', main);
