import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../process/errors.ts';
import { isBuilt, markUsed, pathOf } from './locate.ts';
import type { Environment, LocatedPart } from './locate.ts';
import type { Binary, Part } from './parts.ts';
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

const AT_ONCE = 2;

/** Builds parts, two at a time, and returns how many failed or were not started. A failed part does not stop the others. */
export async function buildAll(located: readonly LocatedPart[], builder: Builder): Promise<number> {
  const queue = [...located];
  const work = async () => {
    for (let next = queue.shift(); next && !builder.stop.aborted; next = queue.shift())
      await buildAndReport(next, builder);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return located.filter(one => !isBuilt(one)).length;
}

const TAIL_LINES = 15;

async function buildAndReport(located: LocatedPart, builder: Builder): Promise<void> {
  try {
    await buildPart(located, builder);
  } catch (error) {
    const about = { part: located.part.name, atMs: performance.now() };
    if (builder.stop.aborted) {
      builder.report({ ...about, is: 'stopped' });
      return;
    }
    const log = logOf(located);
    const lastLines = existsSync(log)
      ? readFileSync(log, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES)
      : [];
    const reason = messageOf(error);
    builder.report({ ...about, is: 'failed', reason, log, lastLines });
  }
}

/** The folder of a part until all of its programs are built. */
function unfinishedFolder({ folder }: Pick<LocatedPart, 'folder'>): string {
  return `${folder}.unfinished`;
}

function logOf(located: LocatedPart): string {
  return join(unfinishedFolder(located), 'build.log');
}

/**
 * Each finished program is renamed into the unfinished folder, so that an interrupted build continues with the next
 * one; the folder is renamed once it holds all of them.
 */
async function buildPart(located: LocatedPart, builder: Builder): Promise<void> {
  const { part, folder } = located;
  const unfinished = { folder: unfinishedFolder(located) };
  const workFolder = openWorkFolder(unfinished.folder);
  markUsed(unfinished, new Date());
  for (const [index, binary] of part.binaries.entries()) {
    const target = pathOf(unfinished, binary.name);
    if (existsSync(target)) continue;
    const report = (is: 'started' | 'finished') =>
      builder.report({
        part: part.name,
        atMs: performance.now(),
        is,
        binary: binary.name,
        index: index + 1,
        of: part.binaries.length,
        log: logOf(located),
      });
    report('started');
    const made = join(workFolder, binary.name);
    const origin = { folder: located.source, version: located.version };
    const command = builder.commandFor(part, binary, origin, made);
    await run(command, logOf(located), builder.environment, builder.stop);
    renameSync(made, target);
    report('finished');
  }
  rmSync(workFolder, { recursive: true });
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished.folder, folder);
}

/** An empty folder for each run: a process that an earlier run left behind may still write to that run's folder. */
function openWorkFolder(unfinished: string): string {
  mkdirSync(join(unfinished, 'bin'), { recursive: true });
  const old = readdirSync(unfinished).filter(name => name.startsWith('work-'));
  for (const name of old) rmSync(join(unfinished, name), { recursive: true, force: true });
  return mkdtempSync(join(unfinished, 'work-'));
}
