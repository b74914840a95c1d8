import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isRunning } from '../../../lab/process/process.ts';
import { processesWith } from '../../../lab/process/process-table.ts';
import { LabFolder } from '../../../lab/state.ts';
import { until } from '../../../lab/process/wait.ts';
import { startCommand, typescript } from '../../support/lab/command-line.ts';

const SOON = { timeoutMs: 100_000 };

/** Starts a process with a guard that has the command line of the lab end what runs in a folder. */
async function startGuarded(then: 'wait' | 'end' | 'release') {
  const folder = new LabFolder(mkdtempSync(join(tmpdir(), 'mesh-lab-')));
  const child = startCommand([
    'env',
    `GUARDED=${folder.path}`,
    ...typescript('test/support/lab/guarded.ts', folder.path, then),
  ]);
  const ended = once(child, 'close');
  if (child.stdout) await once(child.stdout, 'data', { signal: AbortSignal.timeout(SOON.timeoutMs) });
  return { folder, child, ended, processes: folder.processes() };
}

const untilRemoved = ({ path }: LabFolder) =>
  until('the folder to be removed', () => (existsSync(path) ? undefined : 'removed'), SOON);

describe('a guard', () => {
  it('ends what was recorded, and removes its folder, after its process was killed', async () => {
    const { folder, child, processes } = await startGuarded('wait');
    expect(processes.filter(isRunning)).toHaveLength(1);
    child.kill('SIGKILL');
    expect(await untilRemoved(folder)).toBe('removed');
    expect(processes.filter(isRunning)).toEqual([]);
  });

  it('does so after its process has exited, too, and does not delay the exit', async () => {
    const { folder, ended, processes } = await startGuarded('end');
    expect(await ended).toEqual([0, null]);
    expect(await untilRemoved(folder)).toBe('removed');
    expect(processes.filter(isRunning)).toEqual([]);
  });

  it('does nothing after it is released', async () => {
    const { folder, ended, processes } = await startGuarded('release');
    expect(await ended).toEqual([0, null]);
    const isOver = () => Promise.resolve(processesWith('GUARDED', folder.path).length === 0);
    await until('the guard to end', isOver, SOON);
    expect(processes.filter(isRunning)).toHaveLength(1);
    await folder.remove();
  });
});
