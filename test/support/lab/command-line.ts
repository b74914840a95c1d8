import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { programPath } from '../programs/programs.ts';
import type { Program } from '../programs/programs.ts';

/** The folder of the project. */
export const PROJECT = join(import.meta.dirname, '..', '..', '..');

/** The command that `npm run lab --` stands for, as one process that can be killed. */
export function commandLine(...args: readonly string[]): readonly string[] {
  return typescript('lab/commands/lab.ts', ...args);
}

/** The command that runs a program of the project. */
export function typescript(program: Program, ...args: readonly string[]): readonly string[] {
  return [process.execPath, programPath(program), ...args];
}

/** Starts a command and leaves it running. */
export function startCommand([program = '', ...args]: readonly string[]): ChildProcess {
  return spawn(program, args, { cwd: PROJECT, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The result of a command. */
export type Ended = { readonly code: number | string; readonly output: string };

/** Runs a command to its end. */
export function runCommand([program = '', ...args]: readonly string[]): Promise<Ended> {
  return new Promise(resolve => {
    execFile(program, args, { cwd: PROJECT }, (error, stdout, stderr) => {
      resolve({ code: error ? (error.code ?? error.signal ?? 'unknown') : 0, output: `${stdout}${stderr}` });
    });
  });
}

/** Runs a command that must succeed; throws its output if it fails. */
export async function succeed(command: readonly string[]): Promise<string> {
  const { code, output } = await runCommand(command);
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${output}`);
  return output;
}
