import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDirectory } from '../../src/resources/directory.ts';
import { makeFolders } from '../support/folder.ts';
import type { Folders } from '../support/folder.ts';

const open = (folders: Folders) =>
  openDirectory({ ...folders, indexes: [], report: () => undefined, reportFailure: () => undefined });

const lockOf = ({ state }: Folders) => join(state, 'lock');

/** What the file name of a holder says. */
type Holder = {
  readonly pid: number;
  readonly started: string;
  readonly boot: string;
  readonly pids: string;
};

const nameOf = ({ pid, started, boot, pids }: Holder) =>
  `${pid}-${started}-${boot}-${pids}-00000000-0000-4000-8000-000000000000`;

/** What this process calls itself. */
async function ownHolder(): Promise<Holder> {
  const folders = makeFolders();
  const { close } = await open(folders);
  const [name = ''] = readdirSync(lockOf(folders));
  await close();
  const [pid = '', started = '', boot = '', pids = ''] = name.split('-');
  return { pid: Number(pid), started, boot, pids };
}

/** Folders with the files of holders. */
async function heldBy(...holders: readonly Holder[]): Promise<Folders> {
  const folders = makeFolders();
  await mkdir(lockOf(folders), { recursive: true });
  for (const holder of holders) await writeFile(join(lockOf(folders), nameOf(holder)), '');
  return folders;
}

async function deadPid(): Promise<number> {
  const dead = spawn('true');
  await once(dead, 'exit');
  return dead.pid ?? expect.unreachable();
}

describe('a state folder', () => {
  it('is for one process at a time, also twice in the same', async () => {
    const folders = makeFolders();
    const first = await open(folders);
    await expect(open(folders)).rejects.toMatchObject({
      reason: 'Unavailable',
      message: expect.stringContaining(`is in use by process ${process.pid}`) as string,
    });
    await first.close();
    const second = await open(folders);
    await expect(second.close()).resolves.toBeUndefined();
  });

  it('says of a holder on which start of the machine and in which namespace of pids it runs', async () => {
    const { pid, started, boot, pids } = await ownHolder();
    expect(pid).toBe(process.pid);
    expect([started, boot, pids]).toEqual([
      expect.stringMatching(/^\d+$/),
      expect.stringMatching(/^[0-9a-f]{32}$/),
      expect.stringMatching(/^\d+$/),
    ]);
  });

  it('is free when whoever had it is dead, or its pid is another’s, or it gave no sign of life', async () => {
    const own = await ownHolder();
    const silent = [
      { ...own, boot: '0'.repeat(32) },
      { ...own, boot: '0'.repeat(32), pids: '1' },
      { ...own, pids: '1' },
    ];
    const folders = await heldBy({ ...own, pid: await deadPid() }, { ...own, started: '1' }, ...silent);
    const longAgo = new Date(Date.now() - 60_000);
    for (const holder of silent) await utimes(join(lockOf(folders), nameOf(holder)), longAgo, longAgo);
    const directory = await open(folders);
    expect(readdirSync(lockOf(folders))).toHaveLength(1);
    await directory.close();
    expect(readdirSync(lockOf(folders))).toEqual([]);
  });

  it.each<[sentence: string, other: (own: Holder) => Holder]>([
    ['which seems dead here', own => ({ ...own, pid: 999_999_999, pids: '1' })],
    ['which is one of ours by pid and start', own => ({ ...own, pids: '1' })],
    ['of another machine, or of this one before it started', own => ({ ...own, boot: '0'.repeat(32) })],
    ['of a machine that does not tell its starts', own => ({ ...own, boot: '', pids: '' })],
  ])('is not taken from a process elsewhere that shows that it lives, %s', async (_sentence, other) => {
    const holder = other(await ownHolder());
    const folders = await heldBy(holder);
    const path = join(lockOf(folders), nameOf(holder));
    await expect(open(folders)).rejects.toMatchObject({
      reason: 'Unavailable',
      message: expect.stringContaining(`remove ${path}`) as string,
    });
    expect(existsSync(path)).toBe(true);
    await rm(path);
    await expect((await open(folders)).close()).resolves.toBeUndefined();
  });
});
