import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { codeOf, messageOf } from './errors.ts';
import { processesOf, startTimeOf } from './process-table.ts';
import { waitFor } from './wait.ts';

/** What to run. */
export type ProcessSpec = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly folder: string;
  /** Where its output goes. */
  readonly log: string;
};

/** A process that was started here: enough to find it again, and to know that its pid is not someone else's by now. */
export type ProcessRecord = {
  readonly name: string;
  readonly pid: number;
  /** When the kernel started it, and in which boot. */
  readonly startTime: string;
  readonly log: string;
};

/** Starts a process in a group of its own that outlives us; nothing is awaited. */
export function startProcess(spec: ProcessSpec): ProcessRecord {
  const output = openSync(spec.log, 'a', 0o600);
  try {
    const child = spawn(spec.command, [...spec.args], {
      cwd: spec.folder,
      env: { ...spec.environment },
      detached: true,
      stdio: ['ignore', output, output],
    });
    // A command that cannot be run is told by the pid that is missing; the event alone would end us.
    child.on('error', () => undefined);
    child.unref();
    if (child.pid === undefined) throw new Error(`${spec.name}: ${spec.command} cannot be run`);
    return { name: spec.name, pid: child.pid, startTime: startTimeOf(child.pid) ?? '', log: spec.log };
  } finally {
    closeSync(output);
  }
}

/** Whether the very process that was started still runs. */
export function isRunning({ pid, startTime }: ProcessRecord): boolean {
  return startTime !== '' && startTimeOf(pid) === startTime;
}

const FORCE_AFTER_MS = 5_000;

/** Ends a process and the group it leads: kindly first, by force after five seconds. One that is gone is left alone. */
export async function stopProcess(record: ProcessRecord): Promise<void> {
  if (!isRunning(record)) return;
  signalProcess(record, 'SIGTERM');
  const wait = waitFor(`${record.name} to end`, goneOf(record), { timeoutMs: FORCE_AFTER_MS });
  await wait.catch(() => killProcess(record));
}

/** Ends a process and the group it leads in the midst of whatever they do. */
export async function killProcess(record: ProcessRecord): Promise<void> {
  signalProcess(record, 'SIGKILL');
  await waitFor(`${record.name} to end by force`, goneOf(record), { timeoutMs: FORCE_AFTER_MS });
}

function goneOf(record: ProcessRecord): () => Promise<true | undefined> {
  return () => Promise.resolve(isRunning(record) ? undefined : true);
}

/** Sends a signal to the group that a process leads, or to the process alone where it leads none. */
export function signalProcess({ pid }: ProcessRecord, signal: NodeJS.Signals): void {
  if (!reaches(-pid, signal)) reaches(pid, signal);
}

function reaches(target: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(target, signal);
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
    throw error;
  }
}

/**
 * Ends by force every process with the mark of a folder, and tells how many there were: those that were started the moment
 * before we were killed, and those whose parent was killed.
 */
export async function endStrays(folder: string): Promise<number> {
  const strays = new Set<number>();
  const look = (note: (seen: string) => void) => {
    const left = processesOf(folder);
    for (const pid of left) {
      strays.add(pid);
      reaches(pid, 'SIGKILL');
    }
    note(`processes ${left.join(', ')}`);
    return Promise.resolve(left.length === 0 ? true : undefined);
  };
  await waitFor(`all processes of ${folder} to end`, look, { timeoutMs: FORCE_AFTER_MS });
  return strays.size;
}

const TAIL_LINES = 15;

/** The last lines of a process's log, for the error that says why it failed. */
export function tailOf({ log }: Pick<ProcessRecord, 'log'>): string {
  try {
    return readFileSync(log, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  } catch {
    return '(no log)';
  }
}

/** Waits for something, and adds to its error what a process said last. */
export async function orTailOf<T>(record: Pick<ProcessRecord, 'log'>, wait: Promise<T>): Promise<T> {
  try {
    return await wait;
  } catch (error) {
    throw new Error(`${messageOf(error)}\n${tailOf(record)}`, { cause: error });
  }
}
