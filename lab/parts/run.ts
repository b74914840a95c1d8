import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Environment } from './locate.ts';
import type { Command } from './command.ts';

const FORCE_AFTER_MS = 3_000;

/** Go's compiler takes a sixth less processor time when it collects garbage less often; what it builds is the same. */
const FASTER = { GOGC: '400' };

/** Runs a command to its end, and appends its output to a log; an abort ends the command and its children. */
export async function run(
  { command, args, environment, folder }: Command,
  log: string,
  base: Environment,
  stop: AbortSignal,
): Promise<void> {
  stop.throwIfAborted();
  const output = openSync(log, 'a');
  try {
    const child = spawn(command, [...args], {
      cwd: folder,
      env: { ...FASTER, ...base, ...environment },
      detached: true,
      stdio: ['ignore', output, output],
    });
    await ended(child, command, stop);
  } finally {
    closeSync(output);
  }
}

/** The child leads a process group, so that signals reach its compilers too. */
function ended(child: ReturnType<typeof spawn>, command: string, stop: AbortSignal): Promise<void> {
  let force: NodeJS.Timeout | undefined;
  const end = () => {
    signalGroup(child.pid, 'SIGTERM');
    force = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), FORCE_AFTER_MS);
  };
  stop.addEventListener('abort', end, { once: true });
  const exit = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (status, signal) => {
      if (status === 0) resolve();
      else reject(new Error(`${command} ended with ${signal ?? `status ${status}`}`));
    });
  });
  return exit.finally(() => {
    clearTimeout(force);
    stop.removeEventListener('abort', end);
    if (stop.aborted) signalGroup(child.pid, 'SIGKILL');
  });
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // The group has ended already.
  }
}
