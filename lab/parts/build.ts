import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../process/errors.ts';
import { isBuilt, markUsed, missingOf, pathOf } from './locate.ts';
import type { Environment, LocatedPart } from './locate.ts';
import { compareInBuild } from './parts.ts';
import type { Binary, Part, Program } from './parts.ts';
import type { Command, Origin } from './command.ts';
import { run } from './run.ts';

/** An event of a build, for its progress report. */
export type BuildEvent = { readonly part: string; readonly atMs: number } & (
  | {
      readonly is: 'started' | 'finished';
      readonly binary: string;
      readonly index: number;
      readonly of: number;
      readonly log: string;
    }
  | {
      readonly is: 'failed';
      readonly reason: string;
      readonly log: string;
      readonly lastLines: readonly string[];
    }
  | { readonly is: 'stopped' }
);

/** What a build needs from outside. */
export type Builder = {
  readonly commandFor: (part: Part, binary: Binary, origin: Origin, into: string) => Command;
  readonly environment: Environment;
  readonly stop: AbortSignal;
  readonly report: (event: BuildEvent) => void;
};

/** A program to build. */
type Step = { readonly located: LocatedPart; readonly binary: Binary };

/** How many programs are built at a time. */
export const AT_ONCE = 2;

/**
 * Builds the programs that are missing, two at a time and never two of one part, since those compile the same packages.
 * Returns how many parts are not whole. After a program that fails, the others of its part are not tried.
 */
export async function buildAll(located: readonly LocatedPart[], builder: Builder): Promise<number> {
  let queue = located
    .flatMap(one => missingOf(one).map((binary): Step => ({ located: one, binary })))
    .sort((a, b) => compareInBuild(programOf(a), programOf(b)));
  const busy = new Set<LocatedPart>();
  const next = () => {
    const step = queue.find(one => !busy.has(one.located));
    queue = queue.filter(one => one !== step);
    return builder.stop.aborted ? undefined : step;
  };
  const work = async () => {
    for (let step = next(); step; step = next()) {
      const { located: home } = step;
      busy.add(home);
      const isDone = await buildAndReport(step, builder);
      busy.delete(home);
      if (!isDone) queue = queue.filter(one => one.located !== home);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return located.filter(one => !isBuilt(one)).length;
}

function programOf({ located, binary }: Step): Program {
  return { part: located.part, binary };
}

const TAIL_LINES = 15;

async function buildAndReport(step: Step, builder: Builder): Promise<boolean> {
  try {
    await build(step, builder);
    return true;
  } catch (error) {
    const about = { part: step.located.part.name, atMs: performance.now() };
    if (builder.stop.aborted) {
      builder.report({ ...about, is: 'stopped' });
      return false;
    }
    const log = logOf(step.located);
    const lastLines = existsSync(log)
      ? readFileSync(log, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES)
      : [];
    const reason = messageOf(error);
    builder.report({ ...about, is: 'failed', reason, log, lastLines });
    return false;
  }
}

function logOf({ folder }: LocatedPart): string {
  return join(folder, 'build.log');
}

/** The finished program is renamed into the part's folder, so what is there is whole, and used while others are built. */
async function build({ located, binary }: Step, builder: Builder): Promise<void> {
  const { part, binaries, source, version } = located;
  const workFolder = openWorkFolder(located);
  markUsed(located, new Date());
  const report = (is: 'started' | 'finished') =>
    builder.report({
      part: part.name,
      atMs: performance.now(),
      is,
      binary: binary.name,
      index: binaries.indexOf(binary) + 1,
      of: binaries.length,
      log: logOf(located),
    });
  report('started');
  const made = join(workFolder, binary.name);
  const command = builder.commandFor(part, binary, { folder: source, version }, made);
  await run(command, logOf(located), builder.environment, builder.stop);
  renameSync(made, pathOf(located, binary.name));
  rmSync(workFolder, { recursive: true });
  report('finished');
}

/** An empty folder for each program: a process that an earlier run left behind may still write to its own. */
function openWorkFolder({ folder }: LocatedPart): string {
  mkdirSync(join(folder, 'bin'), { recursive: true });
  const old = readdirSync(folder).filter(name => name.startsWith('work-'));
  for (const name of old) rmSync(join(folder, name), { recursive: true, force: true });
  return mkdtempSync(join(folder, 'work-'));
}
