import { onTestFinished } from 'vitest';
import { readStandaloneSettings, startStandalone } from '../../../src/standalone.ts';
import { eventually } from '../eventually.ts';
import type { Folders } from '../files/folder.ts';
import type { LogLine } from './served-process.ts';

/** Standalone in the process of a test, with its log and output. */
export type ServedHere = {
  /** Fulfilled with the port once it serves. */
  readonly started: Promise<number>;
  readonly lines: readonly LogLine[];
  /** Waits for a line of the log. */
  readonly line: (msg: string) => Promise<LogLine>;
  /** Runs its shutdown. */
  readonly stop: () => Promise<void>;
};

/** Starts it on free ports; it ends with the test. */
export async function startHere(
  { folder, state, generated }: Pick<Folders, 'folder' | 'state' | 'generated'>,
  flags: Readonly<Record<string, string>> = {},
): Promise<ServedHere> {
  const addresses = {
    'metrics-address': '127.0.0.1:0',
    'health-address': '127.0.0.1:0',
    'grpc-address': '127.0.0.1:0',
  };
  const folders = { 'resources-dir': folder, 'state-dir': state, 'gateway-dir': generated };
  const usual = { ...addresses, ...folders, pprof: 'off', 'extension-server-address': '127.0.0.1:5005' };
  const args = Object.entries({ ...usual, ...flags }).map(([name, value]) => `--${name}=${value}`);
  const lines: LogLine[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as LogLine);
  const settings = readStandaloneSettings({ args, environment: {} });
  const { started, steps } = await startStandalone(settings, { version: 'test', to: { write } });
  let stopped: Promise<void> | undefined;
  const end = async () => {
    for (const { run } of steps) await run();
  };
  const stop = () => (stopped ??= end());
  onTestFinished(stop);
  const line = (msg: string) =>
    eventually(() => {
      const found = lines.find(one => one.msg === msg);
      if (!found) throw new Error(`no line "${msg}" in ${JSON.stringify(lines)}`);
      return found;
    });
  return { started, lines, line, stop };
}
