import { appendFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import { lineOf } from '../../src/resources/directory/journal-lines.ts';
import type { Entry } from '../../src/resources/directory/journal-lines.ts';
import { eventually } from '../support/eventually.ts';
import {
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
  'a first line that was changed': {
    damage: async folders => {
      const text = readFileSync(journalOf(folders), 'utf8');
      await writeFile(journalOf(folders), text.replace('resources', 'resorces'));
    },
    left: 'abc',
  },
  'a first line that is gone': {
    damage: async folders => {
      const lines = readFileSync(journalOf(folders));
      await writeFile(journalOf(folders), lines.subarray(lines.indexOf('\n') + 1));
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

  it('but is of a later version stays as it is, and nothing starts', async () => {
    const folders = await withState();
    const later = readFileSync(journalOf(folders), 'utf8').replace(/ 1\n/, ' 2\n');
    await writeFile(journalOf(folders), later);
    await expect(openFolder(folders)).rejects.toMatchObject({
      reason: 'Unavailable',
      message: expect.stringMatching(/resources\.journal was written by a later .* version 2/) as string,
    });
    expect(readFileSync(journalOf(folders), 'utf8')).toBe(later);
    expect(readdirSync(folders.state).sort()).toEqual(['lock', 'resources.journal']);
    await writeFile(journalOf(folders), later.replace(' 2\n', ' 1\n'));
    expect(withStatus(await openAndRead(folders))).toEqual(NAMES);
  });

  it('holds what is not valid any more is set aside, and what is valid in it still counts', async () => {
    const folders = await withState();
    const lines = readFileSync(journalOf(folders), 'utf8').trimEnd().split('\n');
    const entries = new Map(
      lines
        .slice(1)
        .map(line => JSON.parse(line.slice(line.indexOf(' '))) as Entry)
        .map(one => [one.key, one]),
    );
    const keys = NAMES.map(name => keyOf(webRef(name)));
    const texts = keys.map(key => lineOf(entries.get(key) ?? expect.unreachable()));
    const changes = [
      ['"total":1', '"total":"many"'],
      ['"port":8080', '"port":70000'],
      ['', ''],
    ] as const;
    const changed = texts.map((text, at) => {
      const [from = '', to = ''] = changes[at] ?? [];
      return lineOf(JSON.parse(text.slice(text.indexOf(' ')).replace(from, to)) as Entry);
    });
    await writeFile(journalOf(folders), `${lines[0] ?? ''}\n${changed.join('')}`);
    await rename(folders.folder, `${folders.folder}.away`);
    const directory = await openFolder(folders);
    expect(directory.read.list('MeshEndpoints').map(({ metadata }) => metadata.name)).toEqual(['a', 'c']);
    expect(withStatus(directory)).toEqual(['c']);
    const invalid = directory.problems().filter(({ reason }) => reason === 'StateDamaged');
    expect(invalid.map(({ message }) => message)).toEqual([
      expect.stringContaining('the status of MeshEndpoints/default/a is not valid any more'),
      expect.stringMatching(/^MeshEndpoints\/default\/b is not valid any more/),
    ]);
    expect(existsSync(join(folders.state, invalid[0]?.file ?? ''))).toBe(true);
  });

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
