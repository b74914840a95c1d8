import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BinaryName } from '../parts/parts.ts';
import { markOf } from './process-table.ts';
import { isRunning, startProcess, tailOf } from './process.ts';
import type { ProcessRecord } from './process.ts';
import type { ProcessNotes } from './state-folder.ts';
import { waitFor } from './wait.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Starts the programs of a lab, and notes each in its folder. */
export type Starter = {
  readonly folder: string;
  readonly pathOf: (name: BinaryName) => string;
  /** Starts a program under a name of its own; its log is NAME.log. */
  readonly start: (
    name: string,
    program: BinaryName,
    args: readonly string[],
    variables?: Variables,
  ) => ProcessRecord;
};

type Variables = Readonly<Record<string, string>>;

/** Turns a command into the one that is run: itself, or one that runs it elsewhere. */
export type Wrapper = (command: string, args: readonly string[]) => readonly [string, readonly string[]];

/** Runs a command here. */
export const asItIs: Wrapper = (command, args) => [command, args];

/** A starter for a folder: programs are at home in it, have its mark, and see of the environment only PATH. */
export function starterIn(
  folder: ProcessNotes,
  pathOf: (name: BinaryName) => string,
  searchPath: string,
  wrap: Wrapper = asItIs,
): Starter {
  return {
    folder: folder.path,
    pathOf,
    start: (name, program, programArgs, variables = {}) => {
      const [command, args] = wrap(pathOf(program), programArgs);
      const record = startProcess({
        name,
        command,
        args,
        environment: { PATH: searchPath, HOME: folder.path, ...markOf(folder.path), ...variables },
        folder: folder.path,
        log: join(folder.path, `${name}.log`),
      });
      folder.addProcess(record);
      return record;
    },
  };
}

/** What a program writes into its ready file, once it is ready; fails at once, with its log, where it ends instead. */
export async function readWhenReady(record: ProcessRecord, file: string): Promise<unknown> {
  const ended = `${record.name} ended before it was ready`;
  const found = await waitFor<{ ready?: unknown }>(`${record.name} to be ready`, () =>
    Promise.resolve(isRunning(record) ? readIfThere(file) : {}),
  );
  if (!('ready' in found)) throw new Error(`${ended}:\n${tailOf(record)}`);
  return found.ready;
}

function readIfThere(file: string): { ready: unknown } | undefined {
  try {
    return { ready: JSON.parse(readFileSync(file, 'utf8')) as unknown };
  } catch {
    return undefined;
  }
}

const run = promisify(execFile);

/** Runs a program of a lab to its end, at home in its folder; it fails with what the program said. */
export async function runProgram(
  { folder, pathOf }: Pick<Starter, 'folder' | 'pathOf'>,
  program: BinaryName,
  args: readonly string[],
): Promise<void> {
  await run(pathOf(program), [...args], {
    cwd: folder,
    env: { HOME: folder, USER: 'lab', ...markOf(folder) },
  });
}
