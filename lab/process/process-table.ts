import { readdirSync, readFileSync } from 'node:fs';

/** The processes that a process started itself and that live. */
export function childrenOf(pid: number): readonly number[] {
  const tasks = listed(`/proc/${pid}/task`);
  const children = tasks.flatMap(task => textOf(`/proc/${pid}/task/${task}/children`).split(' '));
  return children.filter(Boolean).map(Number).filter(isAlive);
}

const MARK = 'MESH_GATEWAY_FOLDER';

/** The variable of the environment by which each process of a lab or a cluster, and all that it starts, is known. */
export function markOf(folder: string): Readonly<Record<string, string>> {
  return { [MARK]: folder };
}

/** The living processes that have the mark of a folder, noted or not. */
export function processesOf(folder: string): readonly number[] {
  return processesWith(MARK, folder);
}

/** The living processes that were started with a variable of the environment, as far as we may look at them. */
export function processesWith(variable: string, value: string): readonly number[] {
  const wanted = `${variable}=${value}`;
  return listed('/proc')
    .filter(name => /^\d+$/.test(name) && textOf(`/proc/${name}/environ`).split('\0').includes(wanted))
    .map(Number)
    .filter(isAlive);
}

function isAlive(pid: number): boolean {
  return startTimeOf(pid) !== undefined;
}

/** Processes end while one looks at them; what is gone, or belongs to another user, is empty. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

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
