import { spawn } from 'node:child_process';
import type { Clock } from '../../api/clock.ts';
import { AccessError } from './access-error.ts';

/** A program that is run for what it prints. */
type Program = {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
};

const LONGEST_RUN_MS = 30_000;
const LONGEST_OUTPUT = 1024 * 1024;

/** What a program prints; it has no input. What it says of errors may hold secrets, and nobody keeps it. */
export function runProgram({ command, args, environment, clock }: Program): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env: environment, stdio: ['ignore', 'pipe', 'ignore'] });
    const chunks: Buffer[] = [];
    const end = (message?: string) => {
      cancel();
      if (message === undefined) {
        resolve(Buffer.concat(chunks).toString());
      } else {
        child.kill('SIGKILL');
        child.stdout.destroy();
        reject(new AccessError(`${command} ${message}`));
      }
    };
    const cancel = clock.after(LONGEST_RUN_MS, () => end(`took longer than ${LONGEST_RUN_MS / 1000} s`));
    let length = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > LONGEST_OUTPUT) end('prints too much');
      else chunks.push(chunk);
    });
    child.on('error', (error: NodeJS.ErrnoException) => end(`cannot be run (${error.code ?? 'unknown'})`));
    child.on('close', code => end(code === 0 ? undefined : `ended with ${code ?? 'a signal'}`));
  });
}
