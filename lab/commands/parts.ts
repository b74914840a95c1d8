/** `npm run parts [-- --only lab] [-- --list]`: builds the real parts that are missing into the user's cache folder. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheFolder, isBuilt, locateParts, markUsed } from '../locate.ts';
import type { LocatedPart } from '../locate.ts';
import { takeLock } from '../lock.ts';
import { partsOf, PARTS } from '../parts.ts';
import type { PartSet } from '../parts.ts';
import { buildAll } from '../parts/build.ts';
import { buildCommand } from '../parts/command.ts';
import { lacksFor } from '../parts/needs.ts';
import { elapsed, Progress } from '../parts/progress.ts';
import { sweep } from '../parts/sweep.ts';
import { EXIT, runMain, stopOnSignals } from '../run-main.ts';

const USAGE = `npm run parts [-- --only lab] [-- --list]

  --only lab   only what runs without root and without Kubernetes
  --list       build nothing, tell what is built and where
`;

const environment = process.env;
const cache = cacheFolder(environment);

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: 'string' }, list: { type: 'boolean' } } });
  if (values.only !== undefined && values.only !== 'lab')
    throw new Error(`there is no set "${values.only}"\n${USAGE}`);
  const set: PartSet = values.only ?? 'cluster';
  const all = locateParts(PARTS, environment);
  const wanted = all.filter(({ part }) => partsOf(set).includes(part));
  if (values.list) return list(wanted);
  const missing = wanted.filter(isMissing);
  const lacks = lacksFor(missing, environment);
  for (const { what, line } of lacks) console.error(`${what} is missing: ${line}`);
  if (lacks.length > 0) return EXIT.notPossible;
  mkdirSync(cache, { recursive: true });
  const status = missing.length === 0 ? EXIT.done : await buildMissing(wanted);
  tidy(all);
  console.log(`${wanted.filter(isBuilt).length} of ${wanted.length} parts are built in ${cache}`);
  return status;
}

function isMissing(located: LocatedPart): boolean {
  return !isBuilt(located);
}

function list(wanted: readonly LocatedPart[]): number {
  for (const located of wanted) {
    const { part, version, folder } = located;
    const name = `${part.name} ${version}`.trimEnd().padEnd(24);
    console.log(`${name}${isBuilt(located) ? 'built   ' : 'missing '}${folder}`);
  }
  return EXIT.done;
}

/** Waits for its turn, after which less may be missing, and builds. */
async function buildMissing(wanted: readonly LocatedPart[]): Promise<number> {
  const progress = new Progress({
    isTerminal: process.stdout.isTTY,
    write: text => process.stdout.write(text),
  });
  const stop = stopOnSignals();
  const startMs = performance.now();
  const release = await takeLock(join(cache, 'lock'), {
    stop,
    tellWaiting: pid => progress.say(`waiting for another run (process ${pid}) to end`),
  });
  if (!release) return EXIT.interrupted;
  const stopShowing = progress.start();
  try {
    const left = await buildAll(wanted.filter(isMissing), {
      commandFor: buildCommand,
      environment,
      stop,
      tell: event => progress.tell(event),
    });
    progress.say(`${elapsed(performance.now() - startMs)} in all`);
    if (stop.aborted) return EXIT.interrupted;
    return left === 0 ? EXIT.done : EXIT.notDone;
  } finally {
    stopShowing();
    release();
  }
}

/** What is built stays; what nobody used for long goes. */
function tidy(all: readonly LocatedPart[]): void {
  const now = new Date();
  for (const located of all.filter(isBuilt)) markUsed(located, now);
  for (const name of sweep(cache, all, now)) console.log(`removed ${name}: not used for 30 days`);
}

await runMain('parts', main);
