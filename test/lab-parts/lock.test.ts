import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { takeLock } from '../../src/lab/parts/lock.ts';
import { startTimeOf } from '../../src/lab/start-time.ts';
import { emptyFolder } from './sample.ts';

const patience = () => {
  const waitedFor: number[] = [];
  return {
    stop: new AbortController().signal,
    tellWaiting: (pid: number) => void waitedFor.push(pid),
    waitedFor,
  };
};

/** The name of the file by which a process asks for the lock. */
function claimOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return `${pid}-${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
}

it('is taken where nobody has it, and leaves nothing behind', async () => {
  const folder = join(emptyFolder(), 'lock');
  const release = await takeLock(folder, patience());
  expect(readdirSync(folder)).toEqual([claimOf(process.pid)]);
  release?.();
  expect(readdirSync(folder)).toEqual([]);
});

it('waits for a living process, says for which, and goes on when that has ended', async () => {
  const folder = emptyFolder();
  const other = spawn('sleep', ['1']);
  const pid = other.pid ?? 0;
  writeFileSync(join(folder, claimOf(pid)), '');
  const ended = once(other, 'exit');
  const asked = patience();
  const release = await takeLock(folder, asked);
  expect(asked.waitedFor).toEqual([pid]);
  expect(startTimeOf(pid)).toBeUndefined();
  await ended;
  release?.();
});

it('is taken over from a dead process, and from one whose number another process has now', async () => {
  const folder = emptyFolder();
  const dead = spawnSync('true').pid;
  for (const name of [`${dead}-1`, `${process.ppid}-1`]) writeFileSync(join(folder, name), '');
  const asked = patience();
  const release = await takeLock(folder, asked);
  expect(asked.waitedFor).toEqual([]);
  expect(readdirSync(folder)).toEqual([claimOf(process.pid)]);
  release?.();
});

it('is not waited for by one that is told to stop', async () => {
  const folder = emptyFolder();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, claimOf(process.ppid)), '');
  const controller = new AbortController();
  const waiting = takeLock(folder, {
    stop: controller.signal,
    tellWaiting: () => controller.abort(new Error('stopped')),
  });
  expect(await waiting).toBe(undefined);
  expect(readdirSync(folder)).toEqual([claimOf(process.ppid)]);
});
