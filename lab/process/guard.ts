import { spawn } from 'node:child_process';

/** Someone who cleans up after us. */
export interface Guard {
  /** Lets it go: there is nothing left to clean up. */
  release(): void;
}

/** Waits for the end of its input without starting anything, and becomes the command. */
const WAIT = 'while read -r _; do :; done; exec "$@"';

/**
 * Has a command run when this process has ended, however it ended, unless the guard is released before. The other end
 * of the guard's input is ours alone: the kernel closes it with us, whoever kills us and how.
 */
export function guard(command: readonly string[], folder: string): Guard {
  const child = spawn('sh', ['-c', WAIT, 'guard', ...command], {
    cwd: folder,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  return {
    release: () => {
      child.kill('SIGKILL');
      child.stdin.destroy();
    },
  };
}
