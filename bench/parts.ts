import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cgroupProcesses } from '../lab/cluster/cgroup.ts';
import { CLUSTER_FOLDER, ClusterFolder } from '../lab/cluster/cluster-folder.ts';
import { guard } from '../lab/process/guard.ts';
import { processesOf } from '../lab/process/process-table.ts';
import type { OnStep } from '../lab/process/steps.ts';
import { median } from './figures.ts';
import type { Bench, Figure } from './figures.ts';

const LAB_RUNS = 3;

/**
 * Measures how long the lab and the cluster take to start and stop, with everything built, and the memory of each
 * program.
 */
export const parts: Bench = { duration: () => ({ aboutMs: 120_000 }), run: partsFigures };

function partsFigures(onStep: OnStep): Promise<readonly Figure[]> {
  if (new ClusterFolder(CLUSTER_FOLDER).running())
    throw new Error('a cluster is up: end it first (npm run cluster -- down)');
  onStep(`the lab, ${LAB_RUNS} times`);
  const lab = labFigures();
  onStep('the cluster, twice');
  return Promise.resolve([...lab, ...clusterFigures()]);
}

/** Starts the lab or the cluster, measures it, and stops it even if measuring fails or is killed. */
function ending<T>(down: readonly string[], measure: () => T): T {
  const command = [process.execPath, '--import', 'tsx', ...down];
  const cleaner = guard(command, process.cwd());
  try {
    return measure();
  } finally {
    execFileSync(process.execPath, command.slice(1), { stdio: 'pipe' });
    cleaner.release();
  }
}

function labFigures(): readonly Figure[] {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-lab-'));
  const command = (name: string) => ['lab/commands/lab.ts', name, '--folder', folder];
  const runs = ending(command('down'), () =>
    Array.from({ length: LAB_RUNS }, () => ({
      up: seconds(...command('up')),
      memory: memoryOf(processesOf(folder)),
      down: seconds(...command('down')),
    })),
  );
  return [
    { name: 'lab up', value: median(runs.map(({ up }) => up)), unit: 's', aim: 5 },
    { name: 'lab down', value: median(runs.map(({ down }) => down)), unit: 's' },
    ...memoryFigures('lab', runs.at(-1)?.memory ?? []),
  ];
}

function clusterFigures(): readonly Figure[] {
  const { up, memory, down } = ending(['lab/commands/cluster.ts', 'down'], () => {
    // Makes missing images now, so that their time is not measured.
    seconds('lab/commands/cluster.ts', 'up');
    seconds('lab/commands/cluster.ts', 'down');
    return {
      up: seconds('lab/commands/cluster.ts', 'up'),
      memory: memoryOf(new Set([...processesOf(CLUSTER_FOLDER), ...cgroupProcesses()])),
      down: seconds('lab/commands/cluster.ts', 'down'),
    };
  });
  return [
    { name: 'cluster up, to Envoy Gateway ready', value: up, unit: 's', aim: 30 },
    { name: 'cluster down', value: down, unit: 's' },
    ...memoryFigures('cluster', memory),
  ];
}

/** The time of a command from start to exit. */
function seconds(...command: readonly string[]): number {
  const startMs = performance.now();
  execFileSync(process.execPath, ['--import', 'tsx', ...command], { stdio: 'pipe' });
  return (performance.now() - startMs) / 1000;
}

type Memory = { readonly program: string; readonly megabytes: number };

function memoryOf(pids: Iterable<number>): readonly Memory[] {
  return [...pids].flatMap(pid => {
    try {
      const program = basename(readlinkSync(`/proc/${pid}/exe`));
      const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
      return [{ program, megabytes: kilobytes / 1024 }];
    } catch {
      // It has ended since it was listed.
      return [];
    }
  });
}

/** Shells and wrappers are left out. */
const SMALL_MEGABYTES = 5;

function memoryFigures(where: string, memory: readonly Memory[]): readonly Figure[] {
  if (memory.length === 0) throw new Error(`nothing ran in the ${where}`);
  const byProgram = new Map<string, number[]>();
  for (const { program, megabytes } of memory)
    byProgram.set(program, [...(byProgram.get(program) ?? []), megabytes]);
  const all = [...byProgram].map(([program, each]) => ({ program, count: each.length, value: sum(each) }));
  return [
    ...all
      .filter(({ value, count }) => value / count > SMALL_MEGABYTES)
      .sort((a, b) => b.value - a.value)
      .map(({ program, count, value }) => ({
        name: `${where}: ${program}${count > 1 ? `, ${count} of them` : ''}`,
        value,
        unit: 'MB',
      })),
    { name: `${where}: all`, value: sum(all.map(({ value }) => value)), unit: 'MB' },
  ];
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
