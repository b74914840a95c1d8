import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { lockHolder, shareTurn, takeLock, takeTurn } from '../../lab/process/lock.ts';
import { startTimeOf } from '../../lab/process/process-table.ts';
import { emptyFolder } from './sample.ts';

const waitOptions = (whenWaiting = () => undefined as void) => {
  const waitedFor: number[] = [];
  return {
    stop: new AbortController().signal,
    onWaiting: (pid: number) => {
      waitedFor.push(pid);
      whenWaiting();
    },
    waitedFor,
  };
};

/** The name of the file by which a process claims the lock. */
function claimOf(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${pid}-${boot}-${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
}

it('is taken when no process holds it, and leaves nothing behind', async () => {
  const folder = join(emptyFolder(), 'lock');
  const release = await takeLock(folder, { ...waitOptions(), purpose: 'counting' });
  expect(readdirSync(folder)).toEqual([claimOf(process.pid)]);
  expect(lockHolder(folder)).toEqual({ pid: process.pid, purpose: 'counting' });
  release?.();
  expect(existsSync(folder)).toBe(false);
  expect(lockHolder(folder)).toBeUndefined();
});

it('waits for a living process, reports its pid, and is taken when that has ended', async () => {
  const folder = emptyFolder();
  const other = spawn('sleep', ['600']);
  const pid = other.pid ?? 0;
  writeFileSync(join(folder, claimOf(pid)), '');
  const ended = once(other, 'exit');
  const options = waitOptions(() => void other.kill());
  const release = await takeLock(folder, options);
  expect(options.waitedFor).toEqual([pid]);
  expect(startTimeOf(pid)).toBeUndefined();
  await ended;
  release?.();
});

it('is taken over from a dead process, also if its pid is reused or it ran before a reboot', async () => {
  const folder = emptyFolder();
  const dead = spawnSync('true').pid;
  const inAnotherBoot = claimOf(process.ppid).replace(/-[0-9a-f]{8}-/, '-00000000-');
  for (const name of [`${dead}-1`, `${process.ppid}-1`, inAnotherBoot]) writeFileSync(join(folder, name), '');
  expect(lockHolder(folder)).toBeUndefined();
  const options = waitOptions();
  const release = await takeLock(folder, options);
  expect(options.waitedFor).toEqual([]);
  expect(readdirSync(folder)).toEqual([claimOf(process.pid)]);
  release?.();
});

it('is not waited for after an abort', async () => {
  const folder = emptyFolder();
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, claimOf(process.ppid)), '');
  const controller = new AbortController();
  const waiting = takeLock(folder, {
    stop: controller.signal,
    onWaiting: () => controller.abort(new Error('stopped')),
  });
  expect(await waiting).toBe(undefined);
  expect(readdirSync(folder)).toEqual([claimOf(process.ppid)]);
});

it('is held by one of many at a time, and removed at the end', async () => {
  const folder = join(emptyFolder(), 'lock');
  const witness = join(emptyFolder(), 'witness');
  // Fails where another is inside, since a folder can be made only once.
  const program = `import { mkdirSync, rmdirSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { takeLock } from './lab/process/lock.ts';
    const options = { stop: new AbortController().signal, onWaiting: () => undefined };
    for (let turn = 0; turn < 5; turn++) {
      const release = await takeLock(${JSON.stringify(folder)}, options);
      mkdirSync(${JSON.stringify(witness)});
      await sleep(5);
      rmdirSync(${JSON.stringify(witness)});
      release();
    }`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', program];
  const runs = Array.from({ length: 4 }, () => spawn(process.execPath, args, { stdio: 'inherit' }));
  const codes = await Promise.all(runs.map(async run => ((await once(run, 'exit')) as [number])[0]));
  expect(codes).toEqual([0, 0, 0, 0]);
  expect(existsSync(folder)).toBe(false);
});

it('passes to the next run once those that share the turn have ended', async () => {
  const folder = join(emptyFolder(), 'turn');
  const endTurn = await takeTurn(folder);
  const cleaner = spawn('sleep', ['600']);
  const ended = once(cleaner, 'exit');
  shareTurn(folder, { pid: cleaner.pid ?? 0 });
  endTurn();
  const reported = vi.spyOn(console, 'error').mockImplementation(() => void cleaner.kill());
  const endNext = await takeTurn(folder);
  expect(reported.mock.calls).toEqual([[`waiting for process ${cleaner.pid} to end`]]);
  await ended;
  endNext();
  reported.mockRestore();
});
