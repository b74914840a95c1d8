import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import type { GatewayResponse } from '../../../lab/gateway/envoy.ts';
import { QUICKSTART_GATEWAY, QUICKSTART_HOST } from '../../../lab/quickstart/quickstart.ts';
import { until } from '../../../lab/process/wait.ts';
import { PROJECT, startCommand, typescript } from './command-line.ts';

/** The HTTP address of the quickstart. */
export const QUICKSTART_LISTENER = `127.0.0.1:${QUICKSTART_GATEWAY.listeners.http}`;

const EXAMPLES = join(PROJECT, 'examples', 'quickstart');

/** `npm start` on a copy of the examples. */
export type RunningQuickstart = {
  /** The command that started it. */
  readonly command: readonly string[];
  readonly output: () => string;
  /** The folder with the declarations. */
  readonly folder: string;
  /** The folder with everything that it generates. */
  readonly state: string;
  /** Changes the file of the web service. */
  readonly edit: (change: (text: string) => string) => void;
  /** Writes a file of declarations. */
  readonly declare: (file: string, text: string) => void;
  /** Restores the examples. */
  readonly restore: () => void;
  /** Ends it with a signal; returns the exit code. */
  readonly end: (signal: 'SIGINT' | 'SIGTERM') => Promise<unknown>;
  /** Ends it if it is running, and removes everything. */
  readonly remove: () => Promise<void>;
};

/** Starts it, and waits until a request has gone through the mesh. */
export async function startQuickstart(): Promise<RunningQuickstart> {
  const root = mkdtempSync(join(tmpdir(), 'quickstart-'));
  const [folder, state] = [join(root, 'declared'), join(root, 'state')];
  const restore = () => cpSync(EXAMPLES, folder, { recursive: true });
  restore();
  const command = typescript('lab/commands/start.ts', '--folder', folder, '--state', state);
  const started = startCommand(command);
  let output = '';
  for (const stream of [started.stdout, started.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(started, 'close').then(([code]: unknown[]) => code);
  const end = (signal: 'SIGINT' | 'SIGTERM') => {
    started.kill(signal);
    return ended;
  };
  const declare = (file: string, text: string) => writeFileSync(join(folder, file), text);
  const running: RunningQuickstart = {
    command,
    folder,
    state,
    restore,
    end,
    declare,
    output: () => output,
    edit: change => declare('web.yaml', change(readFileSync(join(folder, 'web.yaml'), 'utf8'))),
    remove: async () => {
      if (started.exitCode === null) await end('SIGTERM');
      rmSync(root, { recursive: true });
    },
  };
  const isPrinted = (note: (seen: string) => void) => {
    note(output);
    if (output.includes('is missing: ') || output.includes('could not be built')) throw new Error(output);
    if (started.exitCode !== null) throw new Error(`npm start has ended: ${output}`);
    return Promise.resolve(output.includes('Ctrl-C ends everything'));
  };
  try {
    await until('npm start to print the curl line', isPrinted);
    return running;
  } catch (error) {
    await running.remove();
    throw error;
  }
}

/** Sends a request to the web service, or to another host. */
export function requestWeb(
  host = QUICKSTART_HOST,
  headers: Readonly<Record<string, string>> = {},
): Promise<GatewayResponse> {
  return requestThrough(QUICKSTART_LISTENER, { host, headers });
}
