import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { markOf, processesOf, startTimeOf } from '../../lab/process/process-table.ts';
import { isRunning, startProcess } from '../../lab/process/process.ts';
import type { ProcessRecord } from '../../lab/process/process.ts';
import { startTogether } from '../../lab/process/start-together.ts';
import { StateFolder } from '../../lab/process/state-folder.ts';
import { tryAll } from '../../lab/process/errors.ts';
import { asSomeoneElse, emptyFolder, untilDead } from './sample.ts';

const ownFolder = () => new StateFolder<string>(join(emptyFolder(), 'lab'));

/** Starts a process that stays, in an environment of just these variables. */
function startSleep(environment: Readonly<Record<string, string>>): number {
  const { pid = 0 } = spawn('/bin/sleep', ['600'], { env: environment, detached: true, stdio: 'ignore' });
  onTestFinished(() => {
    if (startTimeOf(pid) !== undefined) process.kill(pid, 'SIGKILL');
  });
  return pid;
}

/** Starts a process that stays, and notes it in a folder. */
function addSleep(folder: StateFolder<string>, name = 'sleep'): ProcessRecord {
  const { path } = folder;
  const spec = { name, command: '/bin/sleep', args: ['600'], folder: path, log: join(path, `${name}.log`) };
  const record = startProcess({ ...spec, environment: markOf(path) });
  folder.addProcess(record);
  return record;
}

it('ends recorded and marked processes, but not others with the folder as working directory', async () => {
  const folder = ownFolder();
  folder.create();
  const noted = addSleep(folder);
  const stray = startSleep(markOf(folder.path));
  const other = startSleep({ HOME: folder.path });
  expect(processesOf(folder.path).toSorted()).toEqual([noted.pid, stray].toSorted());
  expect(await folder.remove()).toBe(2);
  expect(isRunning(noted)).toBe(false);
  await untilDead(stray);
  expect(startTimeOf(other)).toBeDefined();
  expect(existsSync(folder.path)).toBe(false);
});

it('ends nothing without records', async () => {
  const folder = ownFolder();
  const stray = startSleep(markOf(folder.path));
  expect(await folder.remove()).toBe(0);
  expect(startTimeOf(stray)).toBeDefined();
});

it('refuses a folder with the state file of another program', async () => {
  const folder = ownFolder();
  mkdirSync(folder.path);
  writeFileSync(join(folder.path, 'state.json'), '{"processes":[]}');
  await expect(folder.remove()).rejects.toThrow('holds other things');
  expect(readdirSync(folder.path)).toEqual(['state.json']);
});

it('ignores records from before a reboot', async () => {
  const folder = ownFolder();
  folder.create();
  const pid = startSleep({});
  const startTime = (startTimeOf(pid) ?? '').replace(/^[0-9a-f]{8}/, '00000000');
  folder.addProcess({ name: 'sleep', pid, startTime, log: '' });
  folder.finish('lab');
  expect(folder.running()).toBeUndefined();
  expect(await folder.remove()).toBe(0);
  expect(startTimeOf(pid)).toBeDefined();
});

it('reports that it needs root when it belongs to another user', async () => {
  const folder = ownFolder();
  folder.create();
  folder.finish('lab');
  chmodSync(folder.path, 0o000);
  const message = `${folder.path} belongs to another user: this needs root`;
  await asSomeoneElse(async () => {
    expect(() => folder.running()).toThrow(message);
    expect(() => folder.processes()).toThrow(message);
    await expect(folder.remove()).rejects.toThrow(message);
  });
  chmodSync(folder.path, 0o700);
  expect(folder.running()).toBe('lab');
});

it('fails with both errors when a start has failed and not all could be ended', async () => {
  const folder = ownFolder();
  folder.create();
  const start = startTogether(folder, new AbortController().signal, () => {
    writeFileSync(join(folder.path, 'mesh-gateway-state.json'), 'not what we wrote');
    return Promise.reject(new Error('it is broken'));
  });
  await expect(start).rejects.toThrow(/^it is broken\nand not all could be ended: .*JSON/s);
});

it('runs all tasks, also after a failure, and reports every failure', async () => {
  const done: string[] = [];
  const work = (name: string, error?: string) => () => {
    done.push(name);
    return error === undefined ? Promise.resolve() : Promise.reject(new Error(error));
  };
  const all = tryAll([work('a', 'a is stubborn'), work('b'), work('c', 'c too'), work('d')]);
  await expect(all).rejects.toThrow('a is stubborn; c too');
  expect(done).toEqual(['a', 'b', 'c', 'd']);
  await expect(tryAll([work('e')])).resolves.toBeUndefined();
});
