import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { readSources } from '../../src/tools/sources.ts';
import { makeFolders } from '../support/files/folder.ts';

let folder: string;
let outside: string;
beforeEach(() => {
  const folders = makeFolders();
  folder = folders.folder;
  outside = join(folders.root, 'outside');
  for (const path of ['declared/a/b.yaml', 'outside/c.yaml', 'outside/d.txt']) {
    mkdirSync(dirname(join(folders.root, path)), { recursive: true });
    writeFileSync(join(folders.root, path), path);
  }
});

/** What is read at these paths: the file of each text, or why it could not be read. */
async function readAt(...paths: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const source of readSources(paths))
    found.push(
      `${source.name.replace(`${folder}/`, '')}: ${'why' in source ? source.why : source.text.trim()}`,
    );
  return found;
}

describe('the files of a folder', () => {
  it('are those that links lead to, too, as in a volume of a ConfigMap', async () => {
    mkdirSync(join(folder, '..data'));
    writeFileSync(join(folder, '..data/web.yaml'), 'of the volume');
    symlinkSync('..data/web.yaml', join(folder, 'web.yaml'));
    symlinkSync(outside, join(folder, 'linked'));
    expect(await readAt(folder)).toEqual([
      'a/b.yaml: declared/a/b.yaml',
      'linked/c.yaml: outside/c.yaml',
      'web.yaml: of the volume',
    ]);
  });

  it('are found once where links lead in circles', async () => {
    symlinkSync('.', join(folder, 'self'));
    symlinkSync('..', join(folder, 'a/up'));
    symlinkSync('b.yaml', join(folder, 'a/again.yaml'));
    expect(await readAt(folder)).toEqual(['a/b.yaml: declared/a/b.yaml']);
  });

  it('are not those that are hidden, which standalone does not read either', async () => {
    writeFileSync(join(folder, '.pre-commit.yaml'), 'x: 1');
    expect(await readAt(folder)).toEqual(['a/b.yaml: declared/a/b.yaml']);
  });

  it('are reported where a link leads nowhere, unless it has another name', async () => {
    symlinkSync('nowhere', join(folder, 'result'));
    symlinkSync('nowhere', join(folder, 'web.yaml'));
    expect(await readAt(folder)).toEqual(['web.yaml: is a link to nothing', 'a/b.yaml: declared/a/b.yaml']);
  });
});

describe('a path', () => {
  it('is read once, however it is written', async () => {
    const file = join(folder, 'a/b.yaml');
    expect(
      await readAt(folder, file, relative(process.cwd(), file), `${folder}/./a/../a/b.yaml`),
    ).toHaveLength(1);
  });

  it('can be a pipe, such as <(kustomize build) of bash', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('sh', ['-c', 'mkfifo "$0"', pipe]);
    const [found] = await Promise.all([readAt(pipe), writeFile(pipe, 'from a pipe')]);
    expect(found).toEqual(['pipe: from a pipe']);
  });

  it.runIf(existsSync('/dev/zero'))('is not read to its end where it has none', async () => {
    expect(await readAt('/dev/zero')).toEqual(['/dev/zero: is larger than 8 MiB and was not read']);
  });

  it.each([
    ['missing.yaml', 'missing.yaml does not exist'],
    ['a/b.yaml/c', 'a/b.yaml/c cannot be read: it is not a folder'],
    ['loop.yaml', 'loop.yaml cannot be read: its links form a cycle'],
  ])('%s is refused with what is wrong', async (path, message) => {
    symlinkSync('loop.yaml', join(folder, 'loop.yaml'));
    await expect(readAt(join(folder, path))).rejects.toThrow(message);
  });
});
