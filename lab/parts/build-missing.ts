import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, isBuilt, missingOf } from './locate.ts';
import type { Environment, LocatedPart } from './locate.ts';
import { takeLock } from '../process/lock.ts';
import type { Screen } from '../screen.ts';
import { buildAll } from './build.ts';
import { buildCommand } from './command.ts';
import { elapsed, Progress } from './progress.ts';

/** What building the missing parts needs from outside. */
export type BuildDeps = {
  readonly environment: Environment;
  readonly stop: AbortSignal;
  readonly screen: Screen;
};

/** Builds the parts that are missing in the cache, after any other process that builds, and returns how many are still missing. */
export async function buildMissing(
  located: readonly LocatedPart[],
  { environment, stop, screen }: BuildDeps,
): Promise<number> {
  const missing = () => located.filter(part => !isBuilt(part));
  const planned = () =>
    located.flatMap(one =>
      missingOf(one).map(({ name, cpuSeconds }) => ({ part: one.part.name, binary: name, cpuSeconds })),
    );
  const cache = cacheFolder(environment);
  const startMs = performance.now();
  mkdirSync(cache, { recursive: true });
  const release = await takeLock(join(cache, 'lock'), {
    stop,
    onWaiting: pid => screen.print(`waiting for another build (process ${pid}) to end`),
  });
  if (!release) return missing().length;
  const progress = new Progress(screen, planned());
  const stopProgress = progress.start();
  try {
    const left = await buildAll(missing(), {
      commandFor: buildCommand,
      environment,
      stop,
      report: event => progress.record(event),
    });
    screen.print(`${elapsed(performance.now() - startMs)} in total`);
    return left;
  } finally {
    stopProgress();
    release();
  }
}
