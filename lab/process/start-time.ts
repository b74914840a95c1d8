import { readFileSync } from 'node:fs';

/**
 * When the kernel started a process: the boot, and clock ticks since it (field 22 of /proc/PID/stat), or nothing where no
 * such process lives; a zombie does not live. A pid is given anew only after all others, so that no two processes agree
 * in both; without the boot they could, since pids and ticks begin anew with each.
 */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = rest[18];
    if (state === 'Z' || ticks === undefined) return undefined;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}-${ticks}`;
  } catch {
    return undefined;
  }
}
