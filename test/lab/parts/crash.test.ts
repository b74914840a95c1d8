import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isRunning } from '../../../lab/process/process.ts';
import { processesOf } from '../../../lab/process/process-table.ts';
import type { LabFolder } from '../../../lab/state.ts';
import { until } from '../../../lab/process/wait.ts';
import { commandLine, runCommand, startCommand, succeed } from '../../support/lab/command-line.ts';
import { ownFolder, startTestLab } from '../../support/lab/lab.ts';
import type { OwnFolder } from '../../support/lab/lab.ts';

let own: OwnFolder;
let folder: LabFolder;
beforeEach(() => {
  own = ownFolder();
  ({ folder } = own);
});
afterEach(async () => {
  await own.end();
});

const lab = (...args: readonly string[]) => commandLine(...args, '--folder', folder.path);

/** The processes of the folder, recorded or not, sorted. */
const livingPids = () => [...processesOf(folder.path)].sort();
const recordedPids = () =>
  folder
    .processes()
    .map(({ pid }) => pid)
    .sort();

async function untilStarted(count: number): Promise<void> {
  const poll = () => Promise.resolve(folder.processes().length >= count);
  await until(`${count} processes of the lab`, poll, { everyMs: 2 });
}

describe('a lab whose up was killed midway', () => {
  it.each([1, 4, 7])('after %i processes is cleaned up by the next up', async count => {
    const up = startCommand(lab('up'));
    const killed = once(up, 'exit');
    await untilStarted(count);
    up.kill('SIGKILL');
    expect(await killed).toEqual([null, 'SIGKILL']);
    const first = folder.processes();
    await succeed(lab('up'));
    expect(first.filter(isRunning)).toEqual([]);
    expect(livingPids()).toEqual(recordedPids());
    await succeed(lab('down'));
    expect(livingPids()).toEqual([]);
    expect(existsSync(folder.path)).toBe(false);
  });

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('by %s cleans up itself', async signal => {
    const up = startCommand(lab('up'));
    const ended = once(up, 'exit');
    await untilStarted(4);
    up.kill(signal);
    expect(await ended).toEqual([130, null]);
    expect(livingPids()).toEqual([]);
    expect(existsSync(folder.path)).toBe(false);
  });
});

describe('a lab whose down was killed midway', () => {
  it('is ended by the next down', async () => {
    await succeed(lab('up', '--only', 'tailnet'));
    const down = startCommand(lab('down'));
    const killed = once(down, 'exit');
    const isBegun = () => Promise.resolve(folder.processes().every(isRunning) ? undefined : true);
    await until('the first process to end', isBegun, { everyMs: 2 });
    down.kill('SIGKILL');
    expect(await killed).toEqual([null, 'SIGKILL']);
    await succeed(lab('down'));
    expect(livingPids()).toEqual([]);
    expect(existsSync(folder.path)).toBe(false);
  });
});

describe('a lab whose processes were killed', () => {
  it('has no Envoy after Envoy Gateway is killed, and is reported as down', async () => {
    const other = await startTestLab({ gateway: {} });
    const named = (name: string) => other.folder.processes().filter(record => record.name === name);
    process.kill(named('envoy-gateway')[0]?.pid ?? 0, 'SIGKILL');
    const isOver = () => Promise.resolve(named('envoy').some(isRunning) ? undefined : true);
    expect(await until('Envoy to end', isOver)).toBe(true);
    expect(other.folder.running()).toBeUndefined();
    await other.end();
    expect(processesOf(other.folder.path)).toEqual([]);
  });

  it('leaves no unrecorded process behind', async () => {
    await succeed(lab('up', '--only', 'tailnet'));
    const [first] = folder.processes();
    if (first) folder.removeProcess(first);
    await folder.remove();
    expect(first && isRunning(first)).toBe(false);
  });
});

describe('a folder with other files', () => {
  it('is neither emptied nor searched for processes', async () => {
    const project = ['--folder', 'docs'];
    for (const command of ['up', 'down']) {
      const { code, output } = await runCommand(commandLine(command, ...project));
      expect(code).toBe(2);
      expect(output).toContain('holds other things');
    }
    expect(existsSync('docs/real-parts.md')).toBe(true);
  });
});
