import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BinaryName } from '../parts/parts.ts';
import { markOf } from './process-table.ts';
import { isRunning, startProcess, tailOf } from './process.ts';
import type { ProcessRecord } from './process.ts';
import type { ProcessNotes } from './state-folder.ts';
import { until } from './wait.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Starts the programs of a lab, and records each in its folder. */
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

/** Wraps a command, for example to run it in other namespaces. */
export type Wrapper = (command: string, args: readonly string[]) => readonly [string, readonly string[]];

/** Does not wrap a command. */
export const asItIs: Wrapper = (command, args) => [command, args];

/** A starter for a folder, which is HOME of its programs; they get its mark, and PATH of the environment. */
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

/** The content of a program's ready file once it is ready; fails with its log if the program ends before. */
export async function readWhenReady(record: ProcessRecord, file: string): Promise<unknown> {
  const ended = `${record.name} ended before it was ready`;
  const found = await until<{ ready?: unknown }>(`${record.name} to be ready`, () =>
    Promise.resolve(isRunning(record) ? readIfExists(file) : {}),
  );
  if (!('ready' in found)) throw new Error(`${ended}:\n${tailOf(record)}`);
  return found.ready;
}

function readIfExists(file: string): { ready: unknown } | undefined {
  try {
    return { ready: JSON.parse(readFileSync(file, 'utf8')) as unknown };
  } catch {
    return undefined;
  }
}

const run = promisify(execFile);

/** Runs a program of a lab to its end, and returns its output; fails with its error output. */
export async function runProgram(
  { folder, pathOf }: Pick<Starter, 'folder' | 'pathOf'>,
  program: BinaryName,
  args: readonly string[],
): Promise<string> {
  const { stdout } = await run(pathOf(program), [...args], {
    cwd: folder,
    env: { HOME: folder, USER: 'lab', ...markOf(folder) },
  });
  return stdout;
}
