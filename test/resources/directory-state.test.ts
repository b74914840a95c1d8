import { readdirSync, readFileSync, statSync } from 'node:fs';
import { rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { OwnResource } from '../../src/resources/resources.ts';
import { eventually } from '../support/eventually.ts';
import { named } from '../support/declared.ts';
import { found, makeFolders, openAndRead, webFile, webRef, writeWhole } from '../support/folder.ts';
import type { Folders, OpenFolder } from '../support/folder.ts';
import { meshBinding } from '../support/objects.ts';

const FINALIZER = 'example.com/finalizer';

/** A status that can be told from others by a number. */
function statusOf(total: number) {
  return { summary: { total, healthy: 0, unhealthy: total, ready: `0/${total}` } };
}

/** Folders with an object in a file of its own. */
async function withWeb(): Promise<Folders & { readonly file: string }> {
  const folders = makeFolders();
  const file = join(folders.folder, 'web.yaml');
  await writeWhole(file, webFile());
  return { ...folders, file };
}

/** Closes a directory and opens it anew. */
async function reopen(directory: OpenFolder): Promise<OpenFolder> {
  await directory.close();
  return openAndRead(directory);
}

const journalOf = ({ state }: Folders) => join(state, 'resources.journal');

const binding = (revision: string, name = 'public') => named(meshBinding({ revision }), name) as never;

describe('what we add to an object of a file', () => {
  it('survives a restart, and never touches the file', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const web = await found(first, webRef());
    await first.write.replaceStatus(web, statusOf(3));
    await first.write.addFinalizer(web, FINALIZER);
    const before = await found(first, webRef());
    expect(before).toMatchObject({ status: statusOf(3), metadata: { finalizers: [FINALIZER] } });
    const second = await reopen(first);
    expect(second.read.get(webRef())).toEqual(before);
    expect(readFileSync(folders.file, 'utf8')).toBe(webFile());
    expect(readdirSync(folders.folder)).toEqual(['web.yaml']);
  });

  it('goes on with what has changed in the meantime', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const { metadata } = await found(first, webRef());
    await first.close();
    await writeWhole(folders.file, webFile('web', 9090));
    const second = await openAndRead(folders);
    expect((await found(second, webRef())).metadata).toMatchObject({ uid: metadata.uid, generation: 2 });
    await second.close();
    await writeWhole(
      folders.file,
      JSON.stringify({ ...JSON.parse(webFile('web', 9090)), metadata: { name: 'web', labels: { a: 'b' } } }),
    );
    const third = await openAndRead(folders);
    expect((await found(third, webRef())).metadata).toMatchObject({ generation: 2, labels: { a: 'b' } });
  });

  it('is not written anew while nothing changes, also not by a restart', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders, { patience: { rescanMs: 20 } });
    const web = await found(first, webRef());
    await first.write.replaceStatus(web, statusOf(1));
    const stampOf = () => {
      const { ino, size, mtimeMs, ctimeMs } = statSync(journalOf(folders));
      return { ino, size, mtimeMs, ctimeMs };
    };
    const before = stampOf();
    await utimes(folders.file, 1, 1);
    await writeWhole(folders.file, `# a comment\n${webFile()}`);
    await first.write.replaceStatus(web, statusOf(1));
    await writeWhole(join(folders.folder, 'empty.yaml'), '# nothing\n');
    const second = await reopen(first);
    expect(second.read.get(webRef())).toMatchObject({ status: statusOf(1) });
    expect(stampOf()).toEqual(before);
  });

  it('is all there when much is written at once', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const web = await found(first, webRef());
    const finalizers = Array.from({ length: 60 }, (_, index) => `example.com/${index}`);
    await Promise.all([
      ...finalizers.map(finalizer => first.write.addFinalizer(web, finalizer)),
      ...finalizers.map((_, index) => first.write.replaceStatus(web, statusOf(index))),
    ]);
    const second = await reopen(first);
    expect(second.read.get(webRef())).toMatchObject({ status: statusOf(59), metadata: { finalizers } });
  });

  it('does not grow without end', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const web: OwnResource = await found(first, webRef());
    const message = 'x'.repeat(30_000);
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'A',
      message,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    for (let total = 0; total < 100; total++) {
      await first.write.replaceStatus(web, { ...statusOf(total), conditions: [condition] } as never);
    }
    expect(statSync(journalOf(folders)).size).toBeLessThan(1_300_000);
    const second = await reopen(first);
    expect(second.read.get(webRef())).toMatchObject({ status: statusOf(99) });
  });
});

describe('an object whose file goes', () => {
  it('is gone with its state', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const before = await found(first, webRef());
    await first.write.replaceStatus(before, statusOf(3));
    await rm(folders.file);
    await eventually(() => expect(first.read.get(webRef())).toBeUndefined());
    await first.close();
    await writeWhole(folders.file, webFile());
    const second = await openAndRead(folders);
    const after = await found(second, webRef());
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    expect(after.status).toBeUndefined();
  });

  it('stays for its finalizers, also if it went while nobody looked, and then leaves nothing behind', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const before = await found(first, webRef());
    await first.write.addFinalizer(before, FINALIZER);
    await first.close();
    await rm(folders.file);
    const second = await openAndRead(folders);
    const deleted = await found(second, webRef(), ({ metadata }) => metadata.deletionTimestamp !== undefined);
    expect(deleted).toMatchObject({
      spec: before.spec,
      metadata: { uid: before.metadata.uid, finalizers: [FINALIZER] },
    });
    const third = await reopen(second);
    expect(third.read.get(webRef())).toEqual(deleted);
    await third.write.removeFinalizer(deleted, FINALIZER);
    expect(third.read.get(webRef())).toBeUndefined();
    const fourth = await reopen(third);
    expect(fourth.read.list('MeshEndpoints')).toEqual([]);
  });

  it('comes back as another when it is defined again and the old one is gone', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const before = await found(first, webRef());
    await first.write.addFinalizer(before, FINALIZER);
    await rm(folders.file);
    const deleted = await found(first, webRef(), ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await writeWhole(folders.file, webFile('web', 9090));
    await writeWhole(join(folders.folder, 'other.yaml'), webFile('other'));
    await found(first, webRef('other'));
    expect(first.read.get(webRef())).toBe(deleted);
    const second = await reopen(first);
    expect(second.read.get(webRef())).toEqual(deleted);
    await second.write.removeFinalizer(deleted, FINALIZER);
    const after = await found(second, webRef());
    expect(after).toMatchObject({ metadata: { generation: 1 }, spec: { endpoints: [{ port: 9090 }] } });
    expect(after.metadata).not.toHaveProperty('deletionTimestamp');
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
  });
});

describe('an object that is ours alone', () => {
  it('survives a restart, and its removal does too', async () => {
    const first = await openAndRead(await withWeb());
    await first.write.apply(binding('01234567'));
    await first.write.apply(binding('01234567', 'other'));
    await first.write.remove({ kind: 'MeshBinding', namespace: 'default', name: 'other' });
    const second = await reopen(first);
    expect(second.read.list('MeshBinding')).toMatchObject([
      { metadata: { name: 'public' }, spec: { revision: '01234567' } },
    ]);
  });

  it('wins over a file that defines it, which is told, and gives way when it is removed', async () => {
    const folders = await withWeb();
    const directory = await openAndRead(folders);
    await directory.write.apply(binding('01234567'));
    await writeWhole(join(folders.folder, 'b.yaml'), JSON.stringify(binding('89abcdef')));
    await eventually(() =>
      expect(directory.problems()).toMatchObject([{ reason: 'Duplicate', file: 'b.yaml' }]),
    );
    expect(directory.read.list('MeshBinding')).toMatchObject([{ spec: { revision: '01234567' } }]);
    await directory.write.remove({ kind: 'MeshBinding', namespace: 'default', name: 'public' });
    expect(directory.read.list('MeshBinding')).toMatchObject([{ spec: { revision: '89abcdef' } }]);
    expect(directory.problems()).toEqual([]);
  });

  it('is never one that a user defined', async () => {
    const folders = await withWeb();
    await writeWhole(join(folders.folder, 'b.yaml'), JSON.stringify(binding('89abcdef')));
    const { write } = await openAndRead(folders);
    await expect(write.apply(binding('01234567'))).rejects.toMatchObject({
      reason: 'Refused',
      message: expect.stringContaining('b.yaml') as string,
    });
    await expect(write.remove(webRef())).rejects.toMatchObject({ reason: 'Refused' });
  });
});
