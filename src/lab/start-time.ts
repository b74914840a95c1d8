import { readFileSync } from 'node:fs';

/**
 * When the kernel started a process, in clock ticks since boot (field 22 of /proc/PID/stat), or nothing where no such
 * process lives; a zombie does not live. Two processes never agree in both pid and start time.
 */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? undefined : rest[18];
  } catch {
    return undefined;
  }
}
