import { spawn } from 'node:child_process';

/** A process that runs a command after this one has ended. */
export interface Guard {
  /** It stays the same while the command runs. */
  readonly pid: number;
  /** Ends the guard without running the command. */
  release(): void;
}

/** Reads its input to the end, and then executes the command. */
const WAIT = 'while read -r _; do :; done; exec "$@"';

/**
 * Runs a command when this process has ended, unless the guard is released before. The guard reads a pipe from this
 * process, which the kernel closes even after SIGKILL.
 */
export function guard(command: readonly string[], folder: string): Guard {
  const child = spawn('sh', ['-c', WAIT, 'guard', ...command], {
    cwd: folder,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  return {
    pid: child.pid ?? 0,
    release: () => {
      child.kill('SIGKILL');
      child.stdin.destroy();
    },
  };
}
