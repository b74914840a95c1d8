import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { codeOf, messageOf } from './errors.ts';
import { processesOf, startTimeOf } from './process-table.ts';
import { until } from './wait.ts';

/** A process to start. */
export type ProcessSpec = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly folder: string;
  /** The file for its output. */
  readonly log: string;
};

/** A process that was started here. The start time shows whether its pid has been reused. */
export type ProcessRecord = {
  readonly name: string;
  readonly pid: number;
  /** The boot, and the time since it. */
  readonly startTime: string;
  readonly log: string;
};

/** Starts a process in a group of its own, which outlives this process. */
export function startProcess(spec: ProcessSpec): ProcessRecord {
  const output = openSync(spec.log, 'a', 0o600);
  try {
    const child = spawn(spec.command, [...spec.args], {
      cwd: spec.folder,
      env: { ...spec.environment },
      detached: true,
      stdio: ['ignore', output, output],
    });
    // Without a listener the event would end this process; the missing pid reports the failure.
    child.on('error', () => undefined);
    child.unref();
    if (child.pid === undefined) throw new Error(`${spec.name}: ${spec.command} cannot be run`);
    return { name: spec.name, pid: child.pid, startTime: startTimeOf(child.pid) ?? '', log: spec.log };
  } finally {
    closeSync(output);
  }
}

/** Whether the process that was started still runs, and not another one with its pid. */
export function isRunning({ pid, startTime }: ProcessRecord): boolean {
  return startTime !== '' && startTimeOf(pid) === startTime;
}

const FORCE_AFTER_MS = 5_000;

/** A busy machine may need some time even for a process that was killed. */
const FORCED_WITHIN_MS = 60_000;

/** Ends a process and its group: SIGTERM first, SIGKILL after five seconds. */
export async function stopProcess(record: ProcessRecord): Promise<void> {
  if (!isRunning(record)) return;
  signalProcess(record, 'SIGTERM');
  const wait = until(`${record.name} to end`, goneOf(record), { timeoutMs: FORCE_AFTER_MS });
  await wait.catch(() => killProcess(record));
}

/** Kills a process and its group. */
export async function killProcess(record: ProcessRecord): Promise<void> {
  signalProcess(record, 'SIGKILL');
  await until(`${record.name} to end by force`, goneOf(record), { timeoutMs: FORCED_WITHIN_MS });
}

function goneOf(record: ProcessRecord): () => Promise<true | undefined> {
  return () => Promise.resolve(isRunning(record) ? undefined : true);
}

/** Sends a signal to the group that a process leads, or to the process alone if it leads none. */
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
 * Kills every process with the mark of a folder, and returns how many there were: those that were not recorded before
 * this process was killed, and those whose parent was killed.
 */
export async function killStrays(folder: string): Promise<number> {
  const strays = new Set<number>();
  const kill = (note: (seen: string) => void) => {
    const left = processesOf(folder);
    for (const pid of left) {
      strays.add(pid);
      reaches(pid, 'SIGKILL');
    }
    note(`processes ${left.join(', ')}`);
    return Promise.resolve(left.length === 0);
  };
  await until(`all processes of ${folder} to end`, kill, { timeoutMs: FORCED_WITHIN_MS });
  return strays.size;
}

const TAIL_LINES = 15;

/** The last lines of a process's log, for the error about its failure. */
export function tailOf({ log }: Pick<ProcessRecord, 'log'>): string {
  try {
    return readFileSync(log, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
  } catch {
    return '(no log)';
  }
}

/** Adds the last lines of a process's log to the error of a promise. */
export async function withLogTail<T>(record: Pick<ProcessRecord, 'log'>, wait: Promise<T>): Promise<T> {
  try {
    return await wait;
  } catch (error) {
    throw new Error(`${messageOf(error)}\n${tailOf(record)}`, { cause: error });
  }
}
