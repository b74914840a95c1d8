import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { until } from '../process/wait.ts';

const ROOT = '/sys/fs/cgroup';
const NAME = 'mesh-gateway-cluster';

/** The parent cgroup of the pods. */
export const CGROUP_ROOT = `/${NAME}`;

/** Creates the cgroup, with cgroup v1 in every hierarchy. */
export function createCgroup(): void {
  enableControllers();
  for (const hierarchy of hierarchies()) {
    const folder = join(hierarchy, NAME);
    mkdirSync(folder, { recursive: true });
    // A cpuset without processors accepts no process (v1).
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      if (existsSync(join(hierarchy, file)) && existsSync(join(folder, file)))
        writeFileSync(join(folder, file), readFileSync(join(hierarchy, file)));
    for (const [file, share] of Object.entries(SHARES))
      if (existsSync(join(folder, file))) writeFileSync(join(folder, file), String(share));
  }
}

/** By default all pods together get as much processor time as one process outside: these are ten times that, with v1 and v2. */
const SHARES = { 'cpu.shares': 10_240, 'cpu.weight': 1_000 };

const CONTROLLERS = ['cpu', 'cpuset', 'hugetlb', 'memory', 'pids'];

/** With cgroup v2 the root enables controllers for its children; they stay enabled. */
function enableControllers(): void {
  const here = join(ROOT, 'cgroup.controllers');
  if (!existsSync(here)) return;
  const below = join(ROOT, 'cgroup.subtree_control');
  const [known, enabled] = [here, below].map(file => readFileSync(file, 'utf8').trim().split(' '));
  const missing = CONTROLLERS.filter(name => known?.includes(name) && !enabled?.includes(name));
  try {
    if (missing.length > 0) writeFileSync(below, missing.map(name => `+${name}`).join(' '));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`the cgroup controllers ${missing.join(', ')} cannot be enabled: ${why}`, {
      cause: error,
    });
  }
}

/** Removes the cgroup and all below it; their processes have been ended before. */
export async function removeCgroup(): Promise<void> {
  const left = () =>
    hierarchies()
      .map(folder => join(folder, NAME))
      .filter(existsSync);
  await until(
    'the cgroups of the cluster to be empty',
    () => {
      for (const folder of left()) removeTree(folder);
      return Promise.resolve(left().length === 0);
    },
    { everyMs: 20 },
  );
}

/** The processes of all pods, by their pid on this machine. */
export function cgroupProcesses(): readonly number[] {
  const [hierarchy = ROOT] = hierarchies();
  const files = readdirSync(join(hierarchy, NAME), { recursive: true, encoding: 'utf8' }).filter(
    path => basename(path) === 'cgroup.procs',
  );
  const lines = files.flatMap(path => readFileSync(join(hierarchy, NAME, path), 'utf8').split('\n'));
  return lines.filter(Boolean).map(Number);
}

function removeTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  rmdirSync(folder);
}

/** The roots of the cgroup hierarchies: one with v2, one per controller with v1. */
function hierarchies(): readonly string[] {
  if (existsSync(join(ROOT, 'cgroup.controllers'))) return [ROOT];
  const folders = readdirSync(ROOT, { withFileTypes: true }).filter(entry => entry.isDirectory());
  return folders.map(({ name }) => join(ROOT, name)).filter(path => existsSync(join(path, 'cgroup.procs')));
}
