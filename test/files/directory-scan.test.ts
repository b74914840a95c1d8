import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { scan } from '../../src/files/scan.ts';
import type { Bounds, WatchedFolder } from '../../src/files/scan.ts';
import { FolderWatch } from '../../src/files/watch.ts';
import { eventually } from '../support/eventually.ts';
import { makeFolders } from '../support/files/folder.ts';

const WIDE: Bounds = { files: 100, folders: 100, depth: 10, links: 4 };

type Tree = { readonly files?: readonly string[]; readonly links?: Readonly<Record<string, string>> };

/** The scan of a folder of files and links. */
async function scanned({ files = [], links = {} }: Tree, bounds: Partial<Bounds> = {}) {
  const { folder } = makeFolders();
  await mkdir(folder);
  for (const file of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), '');
  }
  for (const [link, target] of Object.entries(links)) await symlink(target, join(folder, link));
  const entered: WatchedFolder[] = [];
  const found = await scan(folder, one => entered.push(one), { ...WIDE, ...bounds });
  return {
    files: [...found.files.keys()],
    problems: found.problems.map(({ file, text }) => `${file} ${text}`),
    unknown: found.unknown,
    entered: entered.map(({ path }) => path),
  };
}

describe('a scan of a folder', () => {
  it.each<[sentence: string, tree: Tree, files: readonly string[]]>([
    [
      'files before folders, each in the order of names',
      { files: ['b.yaml', 'a/b.yaml', 'a/a.yaml', 'a.yaml'] },
      ['a.yaml', 'b.yaml', 'a/a.yaml', 'a/b.yaml'],
    ],
    ['a link to a file of another name', { files: ['a.txt'], links: { 'b.yaml': 'a.txt' } }, ['b.yaml']],
    [
      'no link to a file that is there itself',
      { files: ['z.yaml'], links: { 'a.yaml': 'z.yaml' } },
      ['z.yaml'],
    ],
    ['no link to a folder that is there itself', { files: ['z/a.yaml'], links: { a: 'z' } }, ['z/a.yaml']],
    ['a link to a hidden folder, once', { files: ['.a/a.yaml'], links: { a: '.a', b: '.a' } }, ['a/a.yaml']],
    [
      'links behind links',
      { files: ['.a/a.yaml'], links: { '.a/b': '../.b', '.b': '.c', '.c': '.d', '.d': '.a', a: '.d' } },
      ['a/a.yaml'],
    ],
  ])('finds %s', async (_sentence, tree, files) => {
    expect(await scanned(tree)).toMatchObject({ files, problems: [], unknown: [] });
  });

  it.each([['.'], ['..'], ['/'], ['../..']])(
    'does not follow a link to a parent folder: %s',
    async target => {
      const { files, problems, entered } = await scanned({ files: ['a.yaml'], links: { link: target } });
      expect({ files, entered }).toEqual({ files: ['a.yaml'], entered: [''] });
      expect(problems.filter(problem => problem !== 'link is a link to a folder around this one')).toEqual(
        [],
      );
    },
  );

  it('keeps its bounds, and returns the paths that it skipped', async () => {
    const files = ['a.yaml', 'a/a.yaml', 'a/a/a.yaml', 'b/a.yaml'];
    expect(await scanned({ files }, { files: 2 })).toMatchObject({
      files: ['a.yaml', 'a/a.yaml'],
      problems: ['a/a/a.yaml is one of too many files', 'b/a.yaml is one of too many files'],
      unknown: ['a/a/a.yaml', 'b/a.yaml'],
    });
    expect(await scanned({ files }, { folders: 2 })).toMatchObject({
      files: ['a.yaml', 'a/a.yaml'],
      unknown: ['a/a', 'b'],
    });
    expect(await scanned({ files }, { depth: 1 })).toMatchObject({
      problems: ['a/a lies more than 1 folders deep'],
    });
  });

  it('does not follow long chains of links', async () => {
    const { folder, root } = makeFolders();
    await mkdir(folder);
    for (let at = 0; at < 8; at++) {
      await mkdir(join(root, `outside-${at}`));
      await symlink(join(root, `outside-${at + 1}`), join(root, `outside-${at}`, 'next'));
    }
    await symlink(join(root, 'outside-0'), join(folder, 'link'));
    const entered: WatchedFolder[] = [];
    const { problems } = await scan(folder, one => entered.push(one), WIDE);
    expect(entered).toHaveLength(5);
    expect(problems).toEqual([
      { reason: 'TooMuch', file: 'link/next/next/next/next', text: 'lies behind too many links' },
    ]);
  });
});

describe('a watch', () => {
  /** A watch, and its events. */
  function makeWatch() {
    const events: string[] = [];
    const troubles: (string | undefined)[] = [];
    const watch = new FolderWatch({
      onEvent: ({ absolute }, name) => events.push(`${absolute.slice(-1)} ${name ?? ''}`),
      onIncomplete: why => troubles.push(why),
    });
    onTestFinished(() => watch.close());
    return { watch, events, troubles };
  }

  it('is incomplete where a folder cannot be watched', () => {
    const { root } = makeFolders();
    const { watch, troubles } = makeWatch();
    watch.begin();
    watch.add({ absolute: root, identity: '1' });
    watch.add({ absolute: join(root, 'nothing'), identity: '2' });
    watch.end();
    expect(watch.isIncomplete).toBe(true);
    watch.begin();
    watch.add({ absolute: root, identity: '1' });
    watch.end();
    expect(watch.isIncomplete).toBe(false);
    expect(troubles).toEqual(['ENOENT', undefined]);
  });

  it('closes folders that are not added again, and watches a new folder of the same path', async () => {
    const { root } = makeFolders();
    const { watch, events } = makeWatch();
    for (const name of ['a', 'b']) await mkdir(join(root, name));
    const rescan = (names: readonly string[], identity: string) => {
      watch.begin();
      for (const name of names) watch.add({ absolute: join(root, name), identity });
      watch.end();
    };
    rescan(['a', 'b'], '1');
    rescan(['b'], '2');
    await writeFile(join(root, 'a/x'), '');
    await writeFile(join(root, 'b/y'), '');
    await eventually(() => expect(events).toContain('b y'));
    expect(events.filter(one => one.startsWith('a'))).toEqual([]);
  });
});
