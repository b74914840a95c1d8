import { readdirSync, readFileSync } from 'node:fs';

/** The processes that a process started itself and that live. */
export function childrenOf(pid: number): readonly number[] {
  const tasks = listed(`/proc/${pid}/task`);
  const children = tasks.flatMap(task => textOf(`/proc/${pid}/task/${task}/children`).split(' '));
  return children.filter(Boolean).map(Number).filter(isAlive);
}

const MARK = 'MESH_GATEWAY_FOLDER';

/** The environment variable by which the processes of a lab or a cluster are found; child processes inherit it. */
export function markOf(folder: string): Readonly<Record<string, string>> {
  return { [MARK]: folder };
}

/** The living processes that have the mark of a folder, recorded or not. */
export function processesOf(folder: string): readonly number[] {
  return processesWith(MARK, folder);
}

/** The living processes that were started with an environment variable, as far as this user may read them. */
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

/** Empty for a process that has just ended or belongs to another user. */
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
 * When the kernel started a process: the boot, and clock ticks since it (field 22 of /proc/PID/stat); undefined for a
 * zombie or a missing process. A process whose first thread is a zombie lives until the others have ended, since they hold
 * its ports. With the pid it identifies a process: pids and ticks start again with each boot.
 */
export function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [threads, ticks] = [rest[16], rest[18]];
    if ((state === 'Z' && threads === '1') || ticks === undefined) return undefined;
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}-${ticks}`;
  } catch {
    return undefined;
  }
}
