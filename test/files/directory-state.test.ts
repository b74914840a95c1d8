import { readdirSync, readFileSync } from 'node:fs';
import { rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { named } from '../support/declared.ts';
import {
  untilFound,
  makeFolders,
  openAndRead,
  webFile,
  webRef,
  writeWhole,
} from '../support/files/folder.ts';
import type { Folders, OpenFolder } from '../support/files/folder.ts';
import { meshBinding } from '../support/objects.ts';

const FINALIZER = 'example.com/finalizer';

/** A status that differs by a number. */
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

/** Closes a directory and opens it again. */
async function reopen(directory: OpenFolder): Promise<OpenFolder> {
  await directory.close();
  return openAndRead(directory);
}

const binding = (revision: string, name = 'public') => named(meshBinding({ revision }), name) as never;

describe('status and finalizers of an object in a file', () => {
  it('are kept in memory, and never written to the file or its folder', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const web = await untilFound(first, webRef());
    await first.write.replaceStatus(web, statusOf(3));
    await first.write.addFinalizer(web, FINALIZER);
    expect(first.read.get(webRef())).toMatchObject({
      status: statusOf(3),
      metadata: { finalizers: [FINALIZER] },
    });
    expect(readFileSync(folders.file, 'utf8')).toBe(webFile());
    expect(readdirSync(folders.folder)).toEqual(['web.yaml']);
    expect(readdirSync(folders.root)).toEqual(['declared']);
    const second = await reopen(first);
    const after = await untilFound(second, webRef());
    expect(after.status).toBeUndefined();
    expect(after.metadata.finalizers).toBeUndefined();
  });

  it('are lost at each start, with the same uid and the first generation', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders);
    const { metadata } = await untilFound(first, webRef());
    expect(metadata.uid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    await first.close();
    await writeWhole(folders.file, webFile('web', 9090));
    const second = await openAndRead(folders);
    expect((await untilFound(second, webRef())).metadata).toMatchObject({ uid: metadata.uid, generation: 1 });
  });

  it('belong to another uid in another folder', async () => {
    const uids = await Promise.all(
      [1, 2].map(async () => (await untilFound(await openAndRead(await withWeb()), webRef())).metadata.uid),
    );
    expect(new Set(uids).size).toBe(2);
  });

  it('cause no change when the file is saved unchanged', async () => {
    const folders = await withWeb();
    const first = await openAndRead(folders, { timing: { rescanMs: 20 } });
    const web = await untilFound(first, webRef());
    await first.write.replaceStatus(web, statusOf(1));
    const { length } = first.changes;
    await utimes(folders.file, 1, 1);
    await writeWhole(folders.file, `# a comment\n${webFile()}`);
    await first.write.replaceStatus(web, statusOf(1));
    await writeWhole(join(folders.folder, 'other.yaml'), webFile('other'));
    await untilFound(first, webRef('other'));
    expect(first.changes.slice(length).map(({ key }) => key)).toEqual(['MeshEndpoints/default/other']);
  });
});

describe('an object whose file is deleted', () => {
  it('is deleted with its status, and has a new uid when it is created again', async () => {
    const folders = await withWeb();
    const directory = await openAndRead(folders);
    const before = await untilFound(directory, webRef());
    await directory.write.replaceStatus(before, statusOf(3));
    await rm(folders.file);
    await eventually(() => expect(directory.read.get(webRef())).toBeUndefined());
    await writeWhole(folders.file, webFile());
    const after = await untilFound(directory, webRef());
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    expect(after.status).toBeUndefined();
  });

  it('has a new uid when it is defined again after its deletion', async () => {
    const folders = await withWeb();
    const directory = await openAndRead(folders);
    const before = await untilFound(directory, webRef());
    await directory.write.addFinalizer(before, FINALIZER);
    await rm(folders.file);
    const deleted = await untilFound(
      directory,
      webRef(),
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    await writeWhole(folders.file, webFile('web', 9090));
    await writeWhole(join(folders.folder, 'other.yaml'), webFile('other'));
    await untilFound(directory, webRef('other'));
    expect(directory.read.get(webRef())).toBe(deleted);
    await directory.write.removeFinalizer(deleted, FINALIZER);
    const after = await untilFound(directory, webRef());
    expect(after).toMatchObject({ metadata: { generation: 1 }, spec: { endpoints: [{ port: 9090 }] } });
    expect(after.metadata).not.toHaveProperty('deletionTimestamp');
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
  });
});

describe('an object that we own', () => {
  it('wins over a file that defines it, which is reported, until it is removed', async () => {
    const folders = await withWeb();
    const directory = await openAndRead(folders);
    await directory.write.apply(binding('01234567'));
    await writeWhole(join(folders.folder, 'b.yaml'), JSON.stringify(binding('89abcdef')));
    await eventually(() =>
      expect(directory.problems()).toMatchObject([{ reason: 'Repeated', file: 'b.yaml' }]),
    );
    expect(directory.read.list('MeshBinding')).toMatchObject([{ spec: { revision: '01234567' } }]);
    await directory.write.remove({ kind: 'MeshBinding', namespace: 'default', name: 'public' });
    expect(directory.read.list('MeshBinding')).toMatchObject([{ spec: { revision: '89abcdef' } }]);
    expect(directory.problems()).toEqual([]);
  });

  it('cannot replace one that a file defines', async () => {
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
