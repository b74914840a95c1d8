import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLUSTER_FOLDER, ClusterFolder } from '../../lab/cluster/cluster-folder.ts';
import { guard } from '../../lab/process/guard.ts';
import { isRunning } from '../../lab/process/process.ts';
import type { ProcessRecord } from '../../lab/process/process.ts';
import { until } from '../../lab/process/wait.ts';
import { machineState } from '../support/cluster/machine-state.ts';
import { PROJECT, runCommand, startCommand, typescript } from '../support/lab/command-line.ts';

const cluster = (...args: readonly string[]) => typescript('lab/commands/cluster.ts', ...args);
const folder = new ClusterFolder(CLUSTER_FOLDER);
const wasUp = folder.running() !== undefined;
const cleaner = guard(cluster('down'), PROJECT);

/** The machine without a cluster. */
let before: ReturnType<typeof machineState>;
beforeAll(async () => {
  await runCommand(cluster('down'));
  before = await settledState();
});
/** Starts the cluster again that was running before, empty; in CI these are the last tests. */
afterAll(async () => {
  await runCommand(cluster(wasUp && process.env['CI'] === undefined ? 'up' : 'down'));
  cleaner.release();
});

/** The kernel removes namespaces and interfaces shortly after the last process in them has ended. */
const untilMachineIsAsBefore = () => expect.poll(machineState, { timeout: 60_000 }).toEqual(before);

/** The state of the machine once it no longer changes. */
function settledState(): Promise<typeof before> {
  let last: typeof before | undefined;
  const isSettled = () => {
    const earlier = last;
    last = machineState();
    return Promise.resolve(isDeepStrictEqual(earlier, last) ? last : undefined);
  };
  return until('the machine to settle', isSettled, { everyMs: 2_000 });
}

/** Waits until a process of a starting cluster is recorded. */
const untilStarted = (name: string) =>
  until(`${name} to start`, () => folder.processes().find(record => record.name === name), {
    everyMs: 10,
  });

const names = (records: readonly ProcessRecord[]) => records.map(({ name }) => name);

describe('npm run cluster -- up', () => {
  it('reports in one line that it needs root', async () => {
    const { code, output } = await runCommand(['unshare', '--user', ...cluster('up')]);
    expect(output).toBe('cluster: a cluster needs root: sudo npm run cluster -- up\n');
    expect(code).toBe(2);
  });

  it('reports in one line which command builds a part that is missing', async () => {
    const cache = mkdtempSync(join(tmpdir(), 'mesh-gateway-empty-'));
    const { code, output } = await runCommand(['env', `XDG_CACHE_HOME=${cache}`, ...cluster('up')]);
    expect(output).toMatch(/^cluster: \S+ is not built yet: run npm run parts.*\n$/);
    expect(code).toBe(2);
    await untilMachineIsAsBefore();
    rmSync(cache, { recursive: true });
  });

  it('starts nothing twice', async () => {
    expect((await runCommand(cluster('up'))).code).toBe(0);
    const first = folder.processes();
    expect(first.every(isRunning)).toBe(true);
    expect((await runCommand(cluster('up'))).code).toBe(0);
    expect(folder.processes()).toEqual(first);
  });

  it('restarts after a process of the cluster has crashed, which status names', async () => {
    const old = folder.processes();
    const scheduler = await untilStarted('kube-scheduler');
    process.kill(-scheduler.pid, 'SIGKILL');
    await until('the scheduler to end', () => !isRunning(scheduler));
    const status = await runCommand(cluster('status'));
    expect(status.code).toBe(1);
    expect(status.output).toMatch(/^kube-scheduler +has ended/m);
    expect((await runCommand(cluster('up'))).code).toBe(0);
    expect(old.filter(isRunning)).toEqual([]);
    expect(names(folder.processes()).sort()).toEqual(names(old).sort());
  });

  it('restarts a cluster with other programs', async () => {
    const old = folder.processes();
    const running = folder.running();
    if (running) folder.finish({ ...running, fingerprint: 'other parts' });
    const { code, output } = await runCommand(cluster('up'));
    expect(code).toBe(0);
    expect(output).toContain('ending a cluster with other programs or settings');
    expect(old.filter(isRunning)).toEqual([]);
    expect(folder.processes().every(isRunning)).toBe(true);
  });
});

describe('npm run cluster -- down', () => {
  it('leaves the machine as it was, also with pods that run', async () => {
    const { code, output } = await runCommand(cluster('down'));
    expect(code).toBe(0);
    expect(output).toMatch(/^\d\d processes ended\n$/);
    await untilMachineIsAsBefore();
  });

  it('does nothing without a cluster', async () => {
    expect(await runCommand(cluster('down'))).toEqual({ code: 0, output: '0 processes ended\n' });
  });
});

describe('an interrupted start', () => {
  it.each(['sandbox', 'kubelet', 'web-1'])('is rolled back by a signal after %s', async name => {
    const starting = startCommand(cluster('up'));
    const ended = new Promise(resolve => starting.once('exit', resolve));
    await untilStarted(name);
    starting.kill('SIGTERM');
    expect(await ended).toBe(130);
    await untilMachineIsAsBefore();
  });

  it('is cleaned up by the next start after a kill', async () => {
    const starting = startCommand(cluster('up'));
    const ended = new Promise(resolve => starting.once('exit', resolve));
    await untilStarted('coredns');
    starting.kill('SIGKILL');
    await ended;
    const left = folder.processes();
    expect((await runCommand(cluster('up'))).code).toBe(0);
    expect(left.filter(isRunning)).toEqual([]);
    expect((await runCommand(cluster('status'))).output).toContain('the cluster is up');
    await runCommand(cluster('down'));
    await untilMachineIsAsBefore();
  });
});
