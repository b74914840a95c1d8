import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDirectory } from '../../src/resources/directory.ts';
import {
  eventually,
  found,
  makeFolders,
  openAndRead,
  openFolder,
  portOf,
  webFile,
  webRef,
  writeWhole,
} from '../support/folder.ts';
import type { Folders, OpenFolder } from '../support/folder.ts';

const NAMES = ['a', 'b', 'c'] as const;

/** A status that can be told from others by a number. */
function statusOf(total: number) {
  return { summary: { total, healthy: 0, unhealthy: total, ready: `0/${total}` } };
}

const journalOf = ({ state }: Folders) => join(state, 'resources.journal');

/** Folders with three objects, of which each has a status. */
async function withState(): Promise<Folders> {
  const folders = makeFolders();
  for (const name of NAMES) await writeWhole(join(folders.folder, `${name}.yaml`), webFile(name));
  const directory = await openAndRead(folders);
  for (const name of NAMES)
    await directory.write.replaceStatus(await found(directory, webRef(name)), statusOf(1));
  await directory.close();
  return folders;
}

const withStatus = ({ read }: OpenFolder) =>
  NAMES.filter(name => read.get(webRef(name))?.status !== undefined);

/** What is done to the journal, and whose status is there afterwards. */
const DAMAGES: Readonly<
  Record<string, { readonly damage: (folders: Folders) => Promise<void>; readonly left: string }>
> = {
  'a line that was changed': {
    damage: async folders => {
      const text = readFileSync(journalOf(folders), 'utf8');
      await writeFile(
        journalOf(folders),
        text.replaceAll(/("key":"MeshEndpoints\/default\/b".*)"total":1/g, '$1"total":2'),
      );
    },
    left: 'ac',
  },
  'bytes that are no text': {
    damage: async folders => {
      const lines = readFileSync(journalOf(folders));
      lines.fill(0, 30, 60);
      await writeFile(journalOf(folders), lines);
    },
    left: 'abc',
  },
  'another file in its place': {
    damage: folders => writeFile(journalOf(folders), '{"apiVersion":"v1"}\n'),
    left: '',
  },
  'an empty file in its place': { damage: folders => writeFile(journalOf(folders), ''), left: '' },
  'a folder in its place': {
    damage: async folders => {
      await rm(journalOf(folders));
      await mkdir(join(journalOf(folders), 'inner'), { recursive: true });
    },
    left: '',
  },
};

describe('a journal that is not as we wrote it', () => {
  it.each(Object.entries(DAMAGES))('is set aside and told: %s', async (_sentence, { damage, left }) => {
    const folders = await withState();
    await damage(folders);
    const directory = await openAndRead(folders);
    expect(withStatus(directory).join('')).toBe(left);
    const [problem] = directory.problems();
    expect(problem).toMatchObject({ reason: 'StateDamaged' });
    expect(existsSync(join(folders.state, problem?.file ?? ''))).toBe(true);
    await directory.write.replaceStatus(await found(directory, webRef('a')), statusOf(5));
    await directory.close();
    const again = await openAndRead(folders);
    expect(again.read.get(webRef('a'))).toMatchObject({ status: statusOf(5) });
    expect(again.problems()).toEqual([]);
  });

  it.each([1, 10, 100])(
    'but only lacks its end, after %i bytes that were never acknowledged, is as good as whole',
    async bytes => {
      const folders = await withState();
      const before = readFileSync(journalOf(folders));
      appendFileSync(journalOf(folders), 'x'.repeat(bytes));
      const directory = await openAndRead(folders);
      expect(withStatus(directory)).toEqual(NAMES);
      expect(directory.told).toEqual([]);
      expect(readFileSync(journalOf(folders))).toEqual(before);
    },
  );

  it('is set aside so often, and then in the place of the last time', async () => {
    const folders = await withState();
    for (let times = 0; times < 8; times++) {
      await writeFile(journalOf(folders), `damage ${times}`);
      await (await openAndRead(folders)).close();
    }
    const aside = readdirSync(folders.state).filter(name => name.includes('damaged'));
    expect(aside).toHaveLength(5);
    expect(readFileSync(join(folders.state, 'resources.journal.damaged-5'), 'utf8')).toBe('damage 7');
  });

  it('is nobody else’s to read', async () => {
    const folders = await withState();
    expect(statSync(journalOf(folders)).mode & 0o077).toBe(0);
    expect(statSync(folders.state).mode & 0o077).toBe(0);
  });
});

describe('a state folder that cannot be written', () => {
  it('refuses what we write, follows the files, and takes all when it can be written again', async () => {
    const folders = await withState();
    const directory = await openAndRead(folders);
    const a = await found(directory, webRef('a'));
    await rename(folders.state, `${folders.state}.away`);
    await writeFile(folders.state, 'in the way');
    await expect(directory.write.replaceStatus(a, statusOf(7))).rejects.toMatchObject({
      reason: 'Unavailable',
    });
    expect(directory.read.get(webRef('a'))).toMatchObject({ status: statusOf(1) });
    expect(directory.problems()).toMatchObject([{ reason: 'StateNotWritten' }]);
    await writeWhole(join(folders.folder, 'a.yaml'), webFile('a', 9090));
    await eventually(() => expect(portOf(directory, 'a')).toBe(9090));
    await rm(folders.state);
    await eventually(() => expect(directory.problems()).toEqual([]));
    await directory.write.replaceStatus(a, statusOf(8));
    await directory.close();
    const again = await openAndRead(folders);
    expect(again.read.get(webRef('a'))).toMatchObject({
      status: statusOf(8),
      metadata: { uid: a.metadata.uid, generation: 2 },
    });
    expect(withStatus(again)).toEqual(NAMES);
  });

  it('is made anew, whole, where someone removed it', async () => {
    const folders = await withState();
    const directory = await openAndRead(folders);
    await rm(folders.state, { recursive: true });
    await directory.write.replaceStatus(await found(directory, webRef('b')), statusOf(2));
    await directory.close();
    const again = await openAndRead(folders);
    expect(withStatus(again)).toEqual(NAMES);
    expect(again.told).toEqual([]);
  });

  it('says so at once where it can never be one', async () => {
    const folders = makeFolders();
    await writeFile(folders.state, 'a file');
    await expect(openFolder(folders)).rejects.toMatchObject({
      reason: 'Unavailable',
      message: expect.stringContaining(folders.state) as string,
    });
  });
});

describe('a state folder', () => {
  const settings = (folders: Folders) => ({
    ...folders,
    indexes: [],
    report: () => undefined,
    reportFailure: () => undefined,
  });

  it('is for one process at a time, also twice in the same', async () => {
    const folders = makeFolders();
    const first = await openDirectory(settings(folders));
    await expect(openDirectory(settings(folders))).rejects.toMatchObject({
      reason: 'Unavailable',
      message: expect.stringContaining(`is in use by process ${process.pid}`) as string,
    });
    await first.close();
    const second = await openDirectory(settings(folders));
    await expect(second.close()).resolves.toBeUndefined();
  });

  it('is free when the process that had it is dead, or another has its number', async () => {
    const folders = makeFolders();
    const dead = spawn('true');
    await new Promise(resolve => dead.once('exit', resolve));
    await mkdir(join(folders.state, 'lock'), { recursive: true });
    const uuid = '00000000-0000-4000-8000-000000000000';
    await writeFile(join(folders.state, 'lock', `${dead.pid ?? 0}-12345-${uuid}`), '');
    await writeFile(join(folders.state, 'lock', `${process.pid}-1-${uuid}`), '');
    const directory = await openDirectory(settings(folders));
    expect(readdirSync(join(folders.state, 'lock'))).toHaveLength(1);
    await directory.close();
    expect(readdirSync(join(folders.state, 'lock'))).toEqual([]);
  });

  it('takes nothing more when it is closed', async () => {
    const folders = await withState();
    const directory = await openAndRead(folders);
    const a = await found(directory, webRef('a'));
    await directory.close();
    await expect(directory.write.replaceStatus(a, statusOf(9))).rejects.toMatchObject({
      reason: 'Unavailable',
    });
  });
});
