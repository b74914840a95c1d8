import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { GROUP } from '../../src/api/generated/kinds.ts';
import { Definitions } from '../../src/files/definitions.ts';
import { ProblemList } from '../../src/files/problems.ts';
import { FolderReader } from '../../src/files/reader.ts';
import { FolderWatch } from '../../src/files/watch.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolders, openAndRead, portOf, QUICK, webFile, writeWhole } from '../support/files/folder.ts';

/** No rescan runs within the time of a test. */
const UNHURRIED = { ...QUICK, rescanMs: 60_000, unwatchedRescanMs: 60_000 };

describe('a subfolder', () => {
  it('is still watched after it was deleted and created again', async () => {
    const folders = makeFolders();
    const file = join(folders.folder, 'inner/web.yaml');
    await writeWhole(file, webFile('web', 1));
    const directory = await openAndRead(folders, { timing: UNHURRIED });
    for (let port = 10; port < 60; port += 10) {
      await rm(dirname(file), { recursive: true });
      await mkdir(dirname(file));
      for (const next of [port, port + 1]) {
        await writeWhole(file, webFile('web', next));
        await eventually(() => expect(portOf(directory)).toBe(next));
      }
    }
  });

  it('is watched again after its watcher ended, though its identity is the same', async () => {
    const { root } = makeFolders();
    const inner = join(root, 'inner');
    await mkdir(inner);
    const events: (string | undefined)[] = [];
    const watch = new FolderWatch({
      onEvent: (_folder, name) => events.push(name),
      onIncomplete: () => undefined,
    });
    onTestFinished(() => watch.close());
    const rescan = () => {
      watch.begin();
      watch.add({ absolute: inner, identity: 'same', path: 'inner' });
      watch.end();
    };
    rescan();
    await rm(inner, { recursive: true });
    await eventually(() => expect(events).toContain(undefined));
    await mkdir(inner);
    rescan();
    await writeFile(join(inner, 'a'), '');
    await eventually(() => expect(events).toContain('a'));
  });
});

describe('a link to a file in a busy folder', () => {
  /** A folder with links to two files in another. */
  async function withLinks(elsewhere: string) {
    const folders = makeFolders();
    await mkdir(folders.folder);
    for (const name of ['a', 'b']) {
      await writeWhole(join(folders.root, elsewhere, name), webFile(name, 1));
      await symlink(join(folders.root, elsewhere, name), join(folders.folder, `${name}.yaml`));
    }
    return folders;
  }

  it.each(['elsewhere', '.'])('is followed, as is another to the same folder: %s', async elsewhere => {
    const folders = await withLinks(elsewhere);
    const directory = await openAndRead(folders, { timing: UNHURRIED });
    for (const name of ['a', 'b']) {
      await writeWhole(join(folders.root, elsewhere, name), webFile(name, 2));
      await eventually(() => expect(portOf(directory, name)).toBe(2));
    }
  });

  it('causes no reads for other changes there', async () => {
    const { root } = makeFolders();
    const events: (string | undefined)[] = [];
    const watch = new FolderWatch({
      onEvent: (_folder, name) => events.push(name),
      onIncomplete: () => undefined,
    });
    onTestFinished(() => watch.close());
    for (const only of [['c'], ['a', 'b']]) {
      watch.begin();
      for (const name of only) watch.add({ absolute: root, identity: '1', only: name });
      watch.end();
    }
    for (const name of ['c', 'a', 'd', 'b']) await writeFile(join(root, name), '');
    await eventually(() => expect(new Set(events)).toEqual(new Set(['a', 'b'])));
  });
});

describe('a file that fails unexpectedly', () => {
  it('does not affect other files, and is read again at the next scan', async () => {
    const { folder } = makeFolders();
    for (const name of ['a', 'b', 'c']) await writeWhole(join(folder, `${name}.yaml`), webFile(name));
    const failures: unknown[] = [];
    const definitions = new Definitions();
    const failOnce = new Set(['b.yaml']);
    const replace = definitions.replace.bind(definitions);
    definitions.replace = (file, ...rest) => {
      if (failOnce.delete(file)) throw new Error('thrown');
      return replace(file, ...rest);
    };
    const reader = new FolderReader({
      folder,
      defaultNamespace: 'default',
      keepsManifests: false,
      definitions,
      problems: new ProblemList(() => undefined),
      onFolder: () => undefined,
      reportFailure: failure => failures.push(failure),
    });
    const [a, b, c] = ['a', 'b', 'c'].map(name => `${GROUP}|MeshEndpoints|default|${name}`);
    expect((await reader.readAll()).keys).toEqual([a, c]);
    expect(failures).toHaveLength(1);
    expect((await reader.readAll()).keys).toEqual([b]);
    expect((await reader.readAll()).keys).toEqual([]);
  });
});
