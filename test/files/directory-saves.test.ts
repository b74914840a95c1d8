import { execFile } from 'node:child_process';
import { copyFile, mkdir, open, readFile, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { untilFound, makeFolders, openAndRead, portOf, webFile, webRef } from '../support/files/folder.ts';
import type { Folders } from '../support/files/folder.ts';

const run = promisify(execFile);

const git = (folder: string, ...args: readonly string[]) =>
  run('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { cwd: folder });

type Save = {
  /** Creates the folder, where it has more than one file. */
  readonly prepare?: (folders: Folders) => Promise<void>;
  /** Changes the port in it from 8080 to 9090. */
  readonly save: (folder: string, folders: Folders) => Promise<void>;
};

const NEW = webFile('web', 9090);

/** A folder as the kubelet writes it. */
async function fillVolume(folder: string, revision: string, text: string): Promise<void> {
  await mkdir(join(folder, revision, 'inner'), { recursive: true });
  await writeFile(join(folder, revision, 'web.yaml'), text);
  await writeFile(join(folder, revision, 'inner/other.yaml'), webFile('other', 1));
  await symlink(revision, join(folder, '..data_tmp'));
  await rename(join(folder, '..data_tmp'), join(folder, '..data'));
}

/** Writes into an existing file piece by piece. */
async function writeSlowly(path: string, text: string, pauseMs: number): Promise<void> {
  const file = await open(path, 'w');
  for (let at = 0; at < text.length; at += 60) {
    await sleep(pauseMs);
    await file.write(text.slice(at, at + 60));
  }
  await file.close();
}

const SAVES: Readonly<Record<string, Save>> = {
  'vim, which moves the old file away': {
    save: async folder => {
      await writeFile(join(folder, '.web.yaml.swp'), 'swap');
      await writeFile(join(folder, '4913'), '');
      await unlink(join(folder, '4913'));
      await rename(join(folder, 'web.yaml'), join(folder, 'web.yaml~'));
      await writeFile(join(folder, 'web.yaml'), NEW);
      await unlink(join(folder, 'web.yaml~'));
      await unlink(join(folder, '.web.yaml.swp'));
    },
  },
  'vim, which copies the old file and writes over it': {
    save: async folder => {
      await copyFile(join(folder, 'web.yaml'), join(folder, 'web.yaml~'));
      await writeFile(join(folder, 'web.yaml'), NEW);
      await unlink(join(folder, 'web.yaml~'));
    },
  },
  'emacs, with its lock and its backup': {
    save: async folder => {
      await symlink('me@here.1:2', join(folder, '.#web.yaml'));
      await writeFile(join(folder, '#web.yaml#'), 'half');
      await rename(join(folder, 'web.yaml'), join(folder, 'web.yaml~'));
      await writeFile(join(folder, 'web.yaml'), NEW);
      await unlink(join(folder, '#web.yaml#'));
      await unlink(join(folder, '.#web.yaml'));
    },
  },
  'nano, which empties the file and fills it': {
    save: folder => writeSlowly(join(folder, 'web.yaml'), NEW, 0),
  },
  'a slow writer': { save: folder => writeSlowly(join(folder, 'web.yaml'), NEW, 25) },
  'an editor that keeps the old file until the new one exists': {
    save: async folder => {
      await writeFile(join(folder, 'web.yaml___jb_tmp___'), NEW);
      await rename(join(folder, 'web.yaml'), join(folder, 'web.yaml___jb_old___'));
      await rename(join(folder, 'web.yaml___jb_tmp___'), join(folder, 'web.yaml'));
      await unlink(join(folder, 'web.yaml___jb_old___'));
    },
  },
  'sed -i': {
    save: async folder => {
      await run('sed', ['-i', 's/8080/9090/', join(folder, 'web.yaml')]);
    },
  },
  mv: {
    save: async (folder, { root }) => {
      await writeFile(join(root, 'new.yaml'), NEW);
      await run('mv', [join(root, 'new.yaml'), join(folder, 'web.yaml')]);
    },
  },
  cp: {
    save: async (folder, { root }) => {
      await writeFile(join(root, 'new.yaml'), NEW);
      await run('cp', [join(root, 'new.yaml'), join(folder, 'web.yaml')]);
    },
  },
  'git checkout': {
    prepare: async ({ folder }) => {
      await git(folder, 'init', '-q', '-b', 'old');
      await git(folder, 'add', '.');
      await git(folder, 'commit', '-qm', 'old');
      await git(folder, 'checkout', '-qb', 'new');
      await writeFile(join(folder, 'web.yaml'), NEW);
      await git(folder, 'commit', '-qam', 'new');
      await git(folder, 'checkout', '-q', 'old');
    },
    save: async folder => {
      await git(folder, 'checkout', '-q', 'new');
    },
  },
  'unlinking and creating': {
    save: async folder => {
      await unlink(join(folder, 'web.yaml'));
      await sleep(100);
      await writeFile(join(folder, 'web.yaml'), NEW);
    },
  },
  rsync: {
    save: async folder => {
      await writeFile(join(folder, '.web.yaml.Xq31ab'), NEW.slice(0, 50));
      await sleep(20);
      await writeFile(join(folder, '.web.yaml.Xq31ab'), NEW);
      await rename(join(folder, '.web.yaml.Xq31ab'), join(folder, 'web.yaml'));
    },
  },
  'a rename to another name': {
    save: async folder => {
      await rename(join(folder, 'web.yaml'), join(folder, 'a.yaml'));
      await writeFile(join(folder, 'a.yaml'), NEW);
    },
  },
  'a move into a new folder': {
    save: async folder => {
      await mkdir(join(folder, 'inner/most'), { recursive: true });
      await rename(join(folder, 'web.yaml'), join(folder, 'inner/most/web.yaml'));
      await writeFile(join(folder, 'inner/most/web.yaml'), NEW);
    },
  },
  'a replacement of the whole folder': {
    save: async (folder, { root }) => {
      await mkdir(join(root, 'next'));
      await writeFile(join(root, 'next/web.yaml'), NEW);
      await rename(folder, join(root, 'before'));
      await sleep(60);
      await rename(join(root, 'next'), folder);
    },
  },
  'a link to another folder': {
    prepare: async ({ folder, root }) => {
      await rename(folder, join(root, 'release-1'));
      await symlink('release-1', folder);
    },
    save: async (folder, { root }) => {
      await mkdir(join(root, 'release-2'));
      await writeFile(join(root, 'release-2/web.yaml'), NEW);
      await symlink('release-2', join(root, 'link'));
      await rename(join(root, 'link'), folder);
    },
  },
  'a link to a file in another folder': {
    prepare: async ({ folder, root }) => {
      await mkdir(join(root, 'elsewhere'));
      await rename(join(folder, 'web.yaml'), join(root, 'elsewhere/file'));
      await symlink('../elsewhere/file', join(folder, 'web.yaml'));
    },
    save: (_folder, { root }) => writeFile(join(root, 'elsewhere/file'), NEW),
  },
  'the kubelet': {
    prepare: async ({ folder }) => {
      await rm(join(folder, 'web.yaml'));
      await fillVolume(folder, '..2026_01', webFile());
      await symlink('..data/web.yaml', join(folder, 'web.yaml'));
      await symlink('..data/inner', join(folder, 'inner'));
    },
    save: async folder => {
      await fillVolume(folder, '..2026_02', NEW);
      await rm(join(folder, '..2026_01'), { recursive: true });
    },
  },
};

describe('an object keeps its uid and gets the new spec, once, when its file is saved by', () => {
  it.each(Object.entries(SAVES))('%s', async (_sentence, { prepare, save }) => {
    const folders = makeFolders();
    await mkdir(folders.folder);
    await writeFile(join(folders.folder, 'web.yaml'), webFile());
    await prepare?.(folders);
    const directory = await openAndRead(folders, { timing: { deleteAfterMs: 60_000 } });
    const { metadata } = await untilFound(directory, webRef());
    const seen = new Set<number | undefined>([portOf(directory)]);
    directory.read.subscribe(() => seen.add(portOf(directory)));
    await save(folders.folder, folders);
    await eventually(() => expect(portOf(directory)).toBe(9090));
    await eventually(() => expect(directory.problems()).toEqual([]));
    expect([...seen]).toEqual([8080, 9090]);
    const after = await untilFound(directory, webRef());
    expect(after.metadata).toMatchObject({ uid: metadata.uid, generation: 2 });
    expect(directory.failures).toEqual([]);
  });
});

describe('a folder that the kubelet mounts', () => {
  it('is read once, in spite of its links', async () => {
    const folders = makeFolders();
    await mkdir(folders.folder);
    await writeFile(join(folders.folder, 'web.yaml'), webFile());
    await SAVES['the kubelet']?.prepare?.(folders);
    const directory = await openAndRead(folders);
    expect(
      directory.read
        .list('MeshEndpoints')
        .map(({ metadata }) => metadata.name)
        .sort(),
    ).toEqual(['other', 'web']);
    expect(directory.reported).toEqual([]);
    expect(await readFile(join(folders.folder, 'web.yaml'), 'utf8')).toBe(webFile());
  });
});
