import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { PROJECT, typescript } from '../lab/command-line.ts';

/** A line of the log of a process. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly level: string; readonly msg: string };

/** One of our commands as a process, with its log and output. */
export type ServedProcess = {
  readonly child: ChildProcess;
  readonly lines: readonly LogLine[];
  /** Its output. */
  readonly output: () => string;
  /** Waits for a line of the log. */
  readonly line: (msg: string) => Promise<LogLine>;
  /** Waits for the end; returns the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
};

const ANYWHERE = '127.0.0.1:0';

const ADDRESSES = {
  METRICS_ADDRESS: ANYWHERE,
  HEALTH_ADDRESS: ANYWHERE,
  GRPC_ADDRESS: ANYWHERE,
  EXTENSION_SERVER_ADDRESS: '127.0.0.1:5005',
};

/** Starts `mesh-gateway COMMAND` on free ports, by another command if one is given; it ends with the test. */
export function startServed(
  command: string,
  flags: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string>> = {},
  by: readonly string[] = [],
): ServedProcess {
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const [program = '', ...rest] = [...by, ...typescript('src/cli.ts', command, ...args)];
  const child = spawn(program, rest, {
    cwd: PROJECT,
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...ADDRESSES, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines: LogLine[] = [];
  let output = '';
  createInterface({ input: child.stdout }).on('line', line => lines.push(JSON.parse(line) as LogLine));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => (code ?? signal) as number | string);
  const line = (msg: string) =>
    eventually(() => {
      const found = lines.find(one => one.msg === msg);
      if (!found) throw new Error(`no line "${msg}" in ${JSON.stringify(lines)} ${output}`);
      return found;
    });
  return { child, lines, output: () => output, line, ended };
}

/** The response of a process to a path: status and text. */
export async function requestPath(
  port: unknown,
  path: string,
): Promise<readonly [status: number, text: string]> {
  const response = await fetch(`http://127.0.0.1:${String(port)}${path}`);
  return [response.status, await response.text()];
}
