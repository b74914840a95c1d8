import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { mkdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Timing } from '../../src/files/follow.ts';
import type { FileProblem } from '../../src/files/problems.ts';
import { eventually } from '../support/eventually.ts';
import {
  untilFound,
  makeFolders,
  openAndRead,
  openFolder,
  portOf,
  QUICK,
  webFile,
  webRef,
  writeWhole,
} from '../support/files/folder.ts';
import type { OpenFolder } from '../support/files/folder.ts';

const run = promisify(execFile);

/** A MeshEndpoints in YAML, over lines. */
function yaml(name: string, port: number | string = 8080): string {
  return `apiVersion: mesh-gateway.dev/v1alpha1
kind: MeshEndpoints
metadata:
  name: ${name}
spec:
  tailnet: example.ts.net
  endpoints:
    - name: web
      meshIP: 100.64.0.1
      meshFQDN: web.example.ts.net
      port: ${port}
      protocol: HTTP
`;
}

/** Folders with files in them, read. */
async function withFiles(
  files: Readonly<Record<string, string>>,
  timing: Partial<Timing> = QUICK,
): Promise<OpenFolder> {
  const folders = makeFolders();
  for (const [name, text] of Object.entries(files)) await writeWhole(join(folders.folder, name), text);
  return openAndRead(folders, { timing });
}

const namesIn = ({ read }: OpenFolder) =>
  read
    .list('MeshEndpoints')
    .map(({ metadata }) => metadata.name)
    .sort();

const problemsOf = (directory: OpenFolder) =>
  directory
    .problems()
    .map(({ reason, file, line }) => `${reason} ${file}${line === undefined ? '' : `:${line}`}`);

type Spoilt = {
  readonly text: string;
  readonly problem: string;
  /** The ports of a and b afterwards, which were 1 and 2. */
  readonly ports: readonly [a: number | undefined, b: number | undefined];
};

const SPOILT: Readonly<Record<string, Spoilt>> = {
  'is not YAML': { text: `${yaml('a', 3)}\n---\n"`, problem: 'Syntax web.yaml:15', ports: [1, 2] },
  'is cut in the middle of a string': {
    text: `${yaml('a', 3)}---\n${yaml('b', 4).slice(0, -5)}"HT`,
    problem: 'Syntax web.yaml:25',
    ports: [1, 2],
  },
  'is empty': { text: '', problem: 'Syntax web.yaml', ports: [1, 2] },
  'is not UTF-8': { text: '\ud800', problem: 'Unreadable web.yaml', ports: [1, 2] },
  'has a duplicate key': {
    text: `${yaml('a', 3)}---\n${yaml('b', 4)}kind: x\n`,
    problem: 'Syntax web.yaml:26',
    ports: [1, 2],
  },
  'has one invalid object': {
    text: `${yaml('a', 70_000)}---\n${yaml('b', 4)}`,
    problem: 'Invalid web.yaml:11',
    ports: [1, 4],
  },
  'has one invalid object, and lacks another': {
    text: yaml('a', 70_000),
    problem: 'Invalid web.yaml:11',
    ports: [1, 2],
  },
  'has something without a name': {
    text: `${yaml('a', 3)}---\n${yaml('', 4)}`,
    problem: 'Invalid web.yaml:17',
    ports: [3, 2],
  },
  'has something that is not an object': {
    text: `${yaml('a', 3)}---\n[1]\n`,
    problem: 'Invalid web.yaml:14',
    ports: [3, 2],
  },
  'has an object twice': {
    text: `${yaml('a', 3)}---\n${yaml('a', 5)}---\n${yaml('b', 4)}`,
    problem: 'Repeated web.yaml:14',
    ports: [3, 4],
  },
};

describe('a field that the kind does not have', () => {
  it('is reported with its line and the field that is meant, and the object is used', async () => {
    const text = `${yaml('a', 1)}      wieght: 4\n`;
    const directory = await withFiles({ 'web.yaml': text });
    expect(portOf(directory, 'a')).toBe(1);
    expect(directory.reported).toMatchObject([
      {
        reason: 'UnknownField',
        file: 'web.yaml',
        line: 13,
        text: 'spec.endpoints[0].wieght: is not a field of MeshEndpoints and is ignored; did you mean weight?',
      },
    ]);
    await writeWhole(join(directory.folder, 'web.yaml'), yaml('a', 2));
    await eventually(() => expect(directory.problems()).toEqual([]));
  });
});

describe('a file that', () => {
  const writeSpoilt = (folder: string, text: string) =>
    text === '\ud800'
      ? writeFile(join(folder, 'web.yaml'), Buffer.from([0x61, 0xff, 0xfe]))
      : writeWhole(join(folder, 'web.yaml'), text);

  it.each(Object.entries(SPOILT))(
    '%s keeps its previous objects',
    async (_sentence, { text, problem, ports }) => {
      const directory = await withFiles({ 'web.yaml': `${yaml('a', 1)}---\n${yaml('b', 2)}` });
      expect(portOf(directory, 'b')).toBe(2);
      await writeSpoilt(directory.folder, text);
      await eventually(() => expect(problemsOf(directory)).toEqual([problem]));
      await eventually(() => expect([portOf(directory, 'a'), portOf(directory, 'b')]).toEqual(ports));
      expect(directory.reported).toEqual(directory.problems());
      await writeWhole(join(directory.folder, 'web.yaml'), `${yaml('a', 7)}---\n${yaml('b', 8)}`);
      await eventually(() => expect([portOf(directory, 'a'), portOf(directory, 'b')]).toEqual([7, 8]));
      expect(directory.problems()).toEqual([]);
    },
  );

  it('has an invalid item of a List is reported with its line', async () => {
    const items = [yaml('a', 1), yaml('b', 70_000)].map(
      text => `- ${text.trimEnd().replaceAll('\n', '\n  ')}`,
    );
    const directory = await withFiles({
      'list.yml': `kind: List\napiVersion: v1\nitems:\n${items.join('\n')}\n`,
    });
    expect(namesIn(directory)).toEqual(['a']);
    expect(problemsOf(directory)).toEqual(['Invalid list.yml:26']);
  });

  it('is too large is not read', async () => {
    const directory = await withFiles({ 'a.yaml': yaml('a') });
    await truncate(join(directory.folder, 'a.yaml'), 8 * 1024 * 1024 + 1);
    await eventually(() =>
      expect(directory.problems()).toMatchObject([{ reason: 'Unreadable', file: 'a.yaml' }]),
    );
    expect(namesIn(directory)).toEqual(['a']);
  });

  it('has more objects than a file may have is not read', async () => {
    const directory = await withFiles({ 'a.yaml': '---\na: 1\n'.repeat(10_001) });
    expect(problemsOf(directory)).toEqual(['TooMuch a.yaml']);
  });

  it('has very many faults is reported in short', async () => {
    const directory = await withFiles({ 'a.yaml': '---\na: 1\n'.repeat(500) });
    expect(directory.problems()).toHaveLength(100);
    expect(directory.problems().at(-1)?.text).toBe('901 more problems are not listed');
  });

  it('has objects of other kinds is no problem', async () => {
    const directory = await withFiles({
      'a.yaml': `apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: b}\n---\n${yaml('a')}`,
    });
    expect(namesIn(directory)).toEqual(['a']);
    expect(directory.reported).toEqual([]);
  });
});

describe('a file that is deleted and created again', () => {
  it('keeps its previous objects while it is invalid', async () => {
    const directory = await withFiles({ 'a.yaml': yaml('a', 1) }, { deleteAfterMs: 5000 });
    const { metadata } = await untilFound(directory, webRef('a'));
    await rm(join(directory.folder, 'a.yaml'));
    await writeWhole(join(directory.folder, 'b.yaml'), yaml('b'));
    await eventually(() => expect(namesIn(directory)).toEqual(['a', 'b']));
    await writeWhole(join(directory.folder, 'a.yaml'), '<<<<<<< HEAD');
    await eventually(() => expect(problemsOf(directory)).toHaveLength(1));
    await rm(join(directory.folder, 'b.yaml'));
    await eventually(() => expect(namesIn(directory)).toEqual(['a']));
    await writeWhole(join(directory.folder, 'a.yaml'), yaml('a', 2));
    await eventually(() => expect(portOf(directory, 'a')).toBe(2));
    expect((await untilFound(directory, webRef('a'))).metadata.uid).toBe(metadata.uid);
  });
});

describe('one object in several files', () => {
  it('is that of the first file by name, then of the next, and the others are reported', async () => {
    const directory = await withFiles({ 'b.yaml': yaml('web', 2), 'c/a.yaml': yaml('web', 3) });
    expect(portOf(directory)).toBe(2);
    expect(directory.problems()).toMatchObject([
      { reason: 'Repeated', file: 'c/a.yaml', text: expect.stringContaining('b.yaml') as string },
    ]);
    const { metadata } = await untilFound(directory, webRef());
    await writeWhole(join(directory.folder, 'a.yaml'), yaml('web', 1));
    await eventually(() => expect(portOf(directory)).toBe(1));
    expect(problemsOf(directory)).toEqual(['Repeated b.yaml', 'Repeated c/a.yaml']);
    await rm(join(directory.folder, 'a.yaml'));
    await eventually(() => expect(portOf(directory)).toBe(2));
    await rm(join(directory.folder, 'b.yaml'));
    await eventually(() => expect(portOf(directory)).toBe(3));
    expect(directory.problems()).toEqual([]);
    expect((await untilFound(directory, webRef())).metadata.uid).toBe(metadata.uid);
  });
});

describe('secrets', () => {
  const SECRET = 'hunter2-canary';
  const texts: Readonly<Record<string, string>> = {
    'in an object that is not YAML': `apiVersion: v1\nkind: Secret\nstringData:\n  a: "${SECRET}\n`,
    'as an alias': `a: *${SECRET}\n`,
    'as a key that is there twice': `${SECRET}: 1\n${SECRET}: 2\n`,
    'as a tag': `a: !${SECRET} 1\n`,
    'as an escape': `a: "\\q${SECRET}"\n`,
    'as a whole document': `${SECRET}\n`,
    'in the place of an object': `kind: Secret\napiVersion: v1\n---\n- ${SECRET}\n`,
    'in the place of fields': yaml('a').replace('spec:', `status: ${SECRET}\nspec:`),
    'in the place of metadata': `apiVersion: mesh-gateway.dev/v1alpha1\nkind: MeshTailnet\nmetadata: ${SECRET}\nspec: ${SECRET}\n`,
  };

  it.each(Object.entries(texts))('are in no problem: %s', async (_sentence, text) => {
    const directory = await withFiles({ 'a.yaml': text });
    expect(directory.reported.length).toBeGreaterThan(0);
    expect(JSON.stringify(directory.reported)).not.toContain(SECRET);
  });
});

describe('the names in a folder', () => {
  it('decide which files are read', async () => {
    const directory = await withFiles({
      'a.yaml': yaml('a'),
      'b.yml': yaml('b'),
      'c.json': webFile('c'),
      'd/e/f.yaml': yaml('d'),
      '.hidden.yaml': yaml('x1'),
      '.hidden/a.yaml': yaml('x2'),
      'node_modules/a.yaml': yaml('x3'),
      'a.yaml~': yaml('x4'),
      'a.yaml.bak': yaml('x5'),
      'a.txt': yaml('x6'),
      '.a.yaml.swp': yaml('x7'),
      '4913': yaml('x8'),
      '#a.yaml#': yaml('x9'),
    });
    expect(namesIn(directory)).toEqual(['a', 'b', 'c', 'd']);
    expect(directory.reported).toEqual([]);
  });

  it('may have any characters', async () => {
    const names = [
      'with space',
      'new\nline',
      '日本語',
      '🚀',
      'quote\'"',
      '$(id)',
      '%s',
      '-rf',
      'n'.repeat(240),
      '__proto__',
    ];
    const directory = await withFiles(
      Object.fromEntries(names.map((name, at) => [`${name}.yaml`, yaml(`a${at}`)])),
    );
    expect(namesIn(directory)).toHaveLength(names.length);
    await writeWhole(join(directory.folder, 'new\nline.yaml'), 'a: "');
    await eventually(() => expect(problemsOf(directory)).toEqual(['Syntax new?line.yaml:1']));
  });

  it('may be those of pipes and devices, which are not opened', async () => {
    const directory = await withFiles({ 'a.yaml': yaml('a') });
    await run('mkfifo', [join(directory.folder, 'pipe.yaml')]);
    const server = createServer();
    await new Promise<void>(resolve => server.listen(join(directory.folder, 'socket.yaml'), resolve));
    await symlink('/dev/zero', join(directory.folder, 'device.yaml'));
    await symlink('circle.yaml', join(directory.folder, 'circle.yaml'));
    await symlink('nothing', join(directory.folder, 'nothing.yaml'));
    const expected = ['circle', 'device', 'nothing', 'pipe', 'socket'].map(name => `Unreadable ${name}.yaml`);
    await eventually(() => expect(problemsOf(directory).sort()).toEqual(expected));
    await writeWhole(join(directory.folder, 'a.yaml'), yaml('a', 9090));
    await eventually(() => expect(portOf(directory, 'a')).toBe(9090));
    await new Promise(resolve => server.close(resolve));
  });
});

describe('the folder', () => {
  it('may be created late, deleted and created again; its objects stay in the meantime', async () => {
    const folders = makeFolders();
    const directory = openFolder(folders);
    await eventually(() => expect(directory.problems()).toMatchObject([{ reason: 'FolderMissing' }]));
    expect(directory.read.isSynced()).toBe(false);
    await writeWhole(join(folders.folder, 'a.yaml'), yaml('a'));
    await directory.read.whenSynced();
    await eventually(() => expect(namesIn(directory)).toEqual(['a']));
    expect(directory.problems()).toEqual([]);
    await rename(folders.folder, `${folders.folder}.away`);
    await eventually(() => expect(problemsOf(directory)).toEqual(['FolderMissing .']));
    expect(namesIn(directory)).toEqual(['a']);
    await mkdir(folders.folder);
    await writeWhole(join(folders.folder, 'b.yaml'), yaml('b'));
    await eventually(() => expect(namesIn(directory)).toEqual(['b']));
    expect(directory.problems()).toEqual([]);
  });

  it('may be a file by mistake', async () => {
    const folders = makeFolders();
    await writeFile(folders.folder, 'a file');
    const directory = openFolder(folders);
    await eventually(() =>
      expect(directory.problems()).toMatchObject([
        { reason: 'FolderMissing', text: expect.stringContaining('not a folder') as string },
      ]),
    );
  });

  it('may have subfolders that are created, filled and deleted', async () => {
    const directory = await withFiles({ 'a.yaml': yaml('a') });
    const expectAll = (names: readonly string[]) =>
      eventually(() => expect(namesIn(directory)).toEqual(names));
    await writeWhole(join(directory.folder, 'x/y/b.yaml'), yaml('b'));
    await expectAll(['a', 'b']);
    await writeWhole(join(directory.folder, 'x/y/c.yaml'), yaml('c'));
    await expectAll(['a', 'b', 'c']);
    await rename(join(directory.folder, 'x'), join(directory.folder, 'z'));
    await writeWhole(join(directory.folder, 'z/y/c.yaml'), yaml('c', 9090));
    await eventually(() => expect(portOf(directory, 'c')).toBe(9090));
    await expectAll(['a', 'b', 'c']);
    await rename(join(directory.folder, 'z'), join(directory.root, 'outside'));
    await expectAll(['a']);
    await rename(join(directory.root, 'outside'), join(directory.folder, 'w'));
    await expectAll(['a', 'b', 'c']);
    await rm(join(directory.folder, 'w'), { recursive: true });
    await expectAll(['a']);
  });

  it('is scanned again, in case an event was missed', async () => {
    const folders = makeFolders();
    for (const name of ['one', 'two'])
      await writeWhole(join(folders.root, name, 'file'), yaml('a', name === 'one' ? 1 : 2));
    await symlink('one', join(folders.root, 'link'));
    await mkdir(folders.folder);
    await symlink('../link/file', join(folders.folder, 'a.yaml'));
    const directory = await openAndRead(folders, { timing: { rescanMs: 60 } });
    expect(portOf(directory, 'a')).toBe(1);
    await symlink('two', join(folders.root, 'link2'));
    await rename(join(folders.root, 'link2'), join(folders.root, 'link'));
    await eventually(() => expect(portOf(directory, 'a')).toBe(2));
  });
});

describe('problems', () => {
  it('are reported once', async () => {
    const directory = await withFiles({ 'a.yaml': 'a: "' });
    await writeWhole(join(directory.folder, 'b.yaml'), 'b: "');
    await eventually(() => expect(directory.problems()).toHaveLength(2));
    await writeWhole(join(directory.folder, 'a.yaml'), '# the same fault\n');
    await eventually(() => expect(directory.problems()).toHaveLength(1));
    await writeWhole(join(directory.folder, 'a.yaml'), 'a: "');
    await eventually(() => expect(directory.problems()).toHaveLength(2));
    const files = directory.reported.map(({ file }: FileProblem) => file);
    expect(files).toEqual(['a.yaml', 'b.yaml', 'a.yaml']);
  });
});
