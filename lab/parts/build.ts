import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../errors.ts';
import { isBuilt, markUsed, pathOf } from '../locate.ts';
import type { Environment, LocatedPart } from '../locate.ts';
import type { Binary, Part } from '../parts.ts';
import type { Command, Origin } from './command.ts';
import { run } from './run.ts';

/** What happens while parts are built, for those who watch. */
export type BuildEvent = { readonly part: string; readonly atMs: number } & (
  | {
      readonly is: 'started' | 'finished';
      readonly binary: string;
      readonly index: number;
      readonly of: number;
    }
  | {
      readonly is: 'failed';
      readonly reason: string;
      readonly log: string;
      readonly lastLines: readonly string[];
    }
  | { readonly is: 'stopped' }
);

/** What building needs from outside. */
export type Builder = {
  readonly commandFor: (part: Part, binary: Binary, origin: Origin, into: string) => Command;
  readonly environment: Environment;
  readonly stop: AbortSignal;
  readonly tell: (event: BuildEvent) => void;
};

const AT_ONCE = 2;

/** Builds parts, two at a time, and gives the number of those that failed or were not reached; a failure stops no other. */
export async function buildAll(located: readonly LocatedPart[], builder: Builder): Promise<number> {
  const queue = [...located];
  const work = async () => {
    for (let next = queue.shift(); next && !builder.stop.aborted; next = queue.shift())
      await buildOrTell(next, builder);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return located.filter(one => !isBuilt(one)).length;
}

const LAST_LINES = 15;

async function buildOrTell(located: LocatedPart, builder: Builder): Promise<void> {
  try {
    await buildPart(located, builder);
  } catch (error) {
    const about = { part: located.part.name, atMs: performance.now() };
    if (builder.stop.aborted) {
      builder.tell({ ...about, is: 'stopped' });
      return;
    }
    const log = logOf(located);
    const lastLines = existsSync(log)
      ? readFileSync(log, 'utf8').trimEnd().split('\n').slice(-LAST_LINES)
      : [];
    const reason = messageOf(error);
    builder.tell({ ...about, is: 'failed', reason, log, lastLines });
  }
}

/** Where a part is while some of its programs are missing. */
function unfinishedFolder({ folder }: Pick<LocatedPart, 'folder'>): string {
  return `${folder}.unfinished`;
}

function logOf(located: LocatedPart): string {
  return join(unfinishedFolder(located), 'build.log');
}

/**
 * Everything appears by a rename: each program in the unfinished folder, so that it need not be built again after an
 * interruption, and the part as a whole when it has all of them.
 */
async function buildPart(located: LocatedPart, builder: Builder): Promise<void> {
  const { part, folder } = located;
  const unfinished = { folder: unfinishedFolder(located) };
  const workshop = openWorkshop(unfinished.folder);
  markUsed(unfinished, new Date());
  for (const [index, binary] of part.binaries.entries()) {
    const target = pathOf(unfinished, binary.name);
    if (existsSync(target)) continue;
    const tell = (is: 'started' | 'finished') =>
      builder.tell({
        part: part.name,
        atMs: performance.now(),
        is,
        binary: binary.name,
        index: index + 1,
        of: part.binaries.length,
      });
    tell('started');
    const made = join(workshop, binary.name);
    const origin = { folder: located.source, version: located.version };
    const command = builder.commandFor(part, binary, origin, made);
    await run(command, logOf(located), builder.environment, builder.stop);
    renameSync(made, target);
    tell('finished');
  }
  rmSync(workshop, { recursive: true });
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished.folder, folder);
}

/** An empty folder of its own for each run: what an earlier run left may still be written to by a process it lost. */
function openWorkshop(unfinished: string): string {
  mkdirSync(join(unfinished, 'bin'), { recursive: true });
  const old = readdirSync(unfinished).filter(name => name.startsWith('work-'));
  for (const name of old) rmSync(join(unfinished, name), { recursive: true, force: true });
  return mkdtempSync(join(unfinished, 'work-'));
}
