import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keyOf } from '../../src/api/key.ts';
import { Definitions } from '../../src/resources/directory/definitions.ts';
import { Journal } from '../../src/resources/directory/journal.ts';
import { ProblemList } from '../../src/resources/directory/problems.ts';
import { FolderReader } from '../../src/resources/directory/reader.ts';
import { DirectoryState } from '../../src/resources/directory/state.ts';
import type { StatePorts } from '../../src/resources/directory/state.ts';
import { FolderWatch } from '../../src/resources/directory/watch.ts';
import { begin } from '../../src/resources/lifecycle.ts';
import { ResourceStore } from '../../src/resources/store.ts';
import { eventually } from '../support/eventually.ts';
import { named } from '../support/declared.ts';
import {
  found,
  makeFolders,
  openAndRead,
  portOf,
  QUICK,
  webFile,
  webRef,
  writeWhole,
} from '../support/folder.ts';
import { meshBinding } from '../support/objects.ts';

/** What is not seen at once is not seen in the time of a test. */
const UNHURRIED = { ...QUICK, rescanMs: 60_000, blindRescanMs: 60_000 };

describe('a folder in the folder', () => {
  it('is followed also when it was removed and made anew', async () => {
    const folders = makeFolders();
    const file = join(folders.folder, 'inner/web.yaml');
    await writeWhole(file, webFile('web', 1));
    const directory = await openAndRead(folders, { patience: UNHURRIED });
    for (let port = 10; port < 60; port += 10) {
      await rm(dirname(file), { recursive: true });
      await mkdir(dirname(file));
      for (const next of [port, port + 1]) {
        await writeWhole(file, webFile('web', next));
        await eventually(() => expect(portOf(directory)).toBe(next));
      }
    }
  });

  it('is watched anew when its watcher told its end, though all that can be known of it is the same', async () => {
    const { root } = makeFolders();
    const inner = join(root, 'inner');
    await mkdir(inner);
    const told: (string | undefined)[] = [];
    const watch = new FolderWatch({ tell: (_folder, name) => told.push(name), tellTrouble: () => undefined });
    onTestFinished(() => watch.close());
    const say = () => {
      watch.begin();
      watch.add({ absolute: inner, identity: 'same', path: 'inner' });
      watch.end();
    };
    say();
    await rm(inner, { recursive: true });
    await eventually(() => expect(told).toContain(undefined));
    await mkdir(inner);
    say();
    await writeFile(join(inner, 'a'), '');
    await eventually(() => expect(told).toContain('a'));
  });
});

describe('a link to a file in a folder where much happens', () => {
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
    const directory = await openAndRead(folders, { patience: UNHURRIED });
    for (const name of ['a', 'b']) {
      await writeWhole(join(folders.root, elsewhere, name), webFile(name, 2));
      await eventually(() => expect(portOf(directory, name)).toBe(2));
    }
  });

  it('makes nobody look at what else happens there', async () => {
    const { root } = makeFolders();
    const told: (string | undefined)[] = [];
    const watch = new FolderWatch({ tell: (_folder, name) => told.push(name), tellTrouble: () => undefined });
    onTestFinished(() => watch.close());
    for (const only of [['c'], ['a', 'b']]) {
      watch.begin();
      for (const name of only) watch.add({ absolute: root, identity: '1', only: name });
      watch.end();
    }
    for (const name of ['c', 'a', 'd', 'b']) await writeFile(join(root, name), '');
    await eventually(() => expect(new Set(told)).toEqual(new Set(['a', 'b'])));
  });
});

describe('a file that cannot be taken', () => {
  it('costs no other file anything, and is read again with the next look', async () => {
    const { folder } = makeFolders();
    for (const name of ['a', 'b', 'c'])
      await writeWhole(join(folder, `${name}.yaml`), `${webFile(name)}\n---\n${webFile(name)}`);
    const failures: unknown[] = [];
    const definitions = new Definitions();
    const reader = new FolderReader({
      folder,
      defaultNamespace: 'default',
      definitions,
      problems: new ProblemList(({ file }) => {
        if (file === 'b.yaml') throw new Error('thrown');
      }),
      enter: () => undefined,
      reportFailure: failure => failures.push(failure),
    });
    const [a, b, c] = ['a', 'b', 'c'].map(name => keyOf(webRef(name)));
    expect((await reader.lookAtAll()).keys).toEqual([a, c]);
    expect(failures).toHaveLength(1);
    expect((await reader.lookAtAll()).keys).toEqual([b]);
    expect((await reader.lookAtAll()).keys).toEqual([]);
  });
});

const throwing = () => {
  throw new Error('thrown');
};

/** A state whose journal cannot be written where something is in the way. */
function makeState(ports: Partial<StatePorts>) {
  const { state: folder } = makeFolders();
  const failures: unknown[] = [];
  const store = new ResourceStore([], throwing);
  const given = { now: () => new Date(), newUid: () => 'uid' };
  const state = new DirectoryState(
    {
      journal: new Journal(folder),
      store,
      given,
      definitionOf: () => undefined,
      tellSettled: () => undefined,
      tellUnwritten: () => undefined,
      reportFailure: failure => failures.push(failure),
      ...ports,
    },
    new Map(),
  );
  onTestFinished(() => state.close());
  const object = { ...JSON.parse(webFile()), metadata: { name: 'web', namespace: 'default' } } as never;
  const write = () => state.write(keyOf(webRef()), () => begin({ object, from: { by: 'us' } }, given));
  return { folder, state, store, write, failures };
}

describe('one who is told and throws', () => {
  it('leaves no write waiting and no object unread, when it is told of problems', async () => {
    const folders = makeFolders();
    await writeWhole(join(folders.folder, 'a.yaml'), `${webFile()}\n---\nkind: MeshEndpoints`);
    const directory = await openAndRead(folders, { report: throwing });
    const web = await found(directory, webRef());
    const binding = named(meshBinding({ revision: '01234567' }), 'public') as never;
    await directory.write.apply(binding);
    await writeWhole(join(folders.folder, 'b.yaml'), JSON.stringify(binding));
    await eventually(() => expect(directory.problems()).toHaveLength(2));
    await directory.write.addFinalizer(web, 'example.com/a');
    await directory.write.remove({ kind: 'MeshBinding', namespace: 'default', name: 'public' });
    await eventually(() => expect(directory.read.list('MeshBinding')).toHaveLength(1));
    expect(directory.problems()).toHaveLength(1);
  });

  it('leaves no write waiting, when it is told that something is settled', async () => {
    const { write, failures } = makeState({ tellSettled: throwing });
    await expect(write()).resolves.toBeUndefined();
    await expect(write()).resolves.toBeUndefined();
    await eventually(() => expect(failures).toHaveLength(2));
  });

  it('leaves no write waiting, when it is told that nothing can be written', async () => {
    const { folder, write } = makeState({ tellUnwritten: throwing });
    await writeFile(folder, 'in the way');
    await expect(Promise.allSettled([write(), write()])).resolves.toMatchObject([
      { status: 'rejected' },
      { status: 'rejected' },
    ]);
    await expect(write()).rejects.toBeDefined();
  });
});

describe('what no file says any more when we start', () => {
  it('is given up before all counts as read, at once', async () => {
    const folders = makeFolders();
    for (const name of ['a', 'b', 'c']) await writeWhole(join(folders.folder, `${name}.yaml`), webFile(name));
    const first = await openAndRead(folders);
    await first.write.addFinalizer(await found(first, webRef('a')), 'example.com/a');
    await first.close();
    for (const name of ['a', 'b']) await rm(join(folders.folder, `${name}.yaml`));
    const second = await openAndRead(folders, { patience: { goneMs: 60_000 } });
    expect(second.read.get(webRef('a'))?.metadata.deletionTimestamp).toBeDefined();
    expect(second.read.get(webRef('b'))).toBeUndefined();
    expect(second.read.get(webRef('c'))).toBeDefined();
    expect(second.changes.filter(({ isFirst }) => !isFirst)).toEqual([]);
  });
});

describe('what is kept of an object', () => {
  it('is the one that is read, and what a file says of it shares with that', async () => {
    const { state, store, write } = makeState({});
    await write();
    const kept = state.get(keyOf(webRef()))?.object;
    expect(kept).toBeDefined();
    expect(store.get(webRef())).toBe(kept);
    const definitions = new Definitions();
    const said = JSON.parse(webFile()) as never;
    definitions.replace('web.yaml', new Map([[keyOf(webRef()), said]]), 0);
    definitions.adopt(keyOf(webRef()), kept ?? expect.unreachable());
    const shared = definitions.get(keyOf(webRef()))?.object;
    expect(shared).toEqual(said);
    expect(shared).toMatchObject({ spec: { endpoints: [{ port: 8080 }] } });
    expect(shared && 'spec' in shared && shared.spec).toBe(store.get(webRef())?.spec);
  });
});
