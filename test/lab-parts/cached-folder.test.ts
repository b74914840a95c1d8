import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { cachedFolder } from '../../lab/parts/cached-folder.ts';
import { fingerprint } from '../../lab/cluster/fingerprint.ts';
import { PROJECT } from '../support/lab/command-line.ts';
import { emptyFolder } from './sample.ts';

const now = new Date('2026-03-01T00:00:00Z');
const DAY_MS = 24 * 60 * 60 * 1000;

/** Makes a folder with a file, or returns the one that exists; `made` has the keys of those that were made. */
function maker(cache = emptyFolder()) {
  const made: string[] = [];
  const get = (key: string, fill = (folder: string) => writeFileSync(join(folder, 'content'), key)) =>
    cachedFolder({
      ...{ cache, name: 'store', key, now },
      make: folder => {
        made.push(key);
        fill(folder);
        return Promise.resolve();
      },
    });
  return { cache, made, get };
}

const entries = (cache: string) => readdirSync(cache).sort();

it('is made once for each key', async () => {
  const { made, get } = maker();
  const first = await get('0a');
  expect(await get('0a')).toBe(first);
  const second = await get('0b');
  expect([first, second].map(folder => readFileSync(join(folder, 'content'), 'utf8'))).toEqual(['0a', '0b']);
  expect(made).toEqual(['0a', '0b']);
});

it('is made again once a program, or a file that it is made from, is another one', () => {
  const folder = emptyFolder();
  writeFileSync(join(folder, 'kinds.yaml'), 'kind: A');
  writeFileSync(join(folder, 'notes.txt'), 'first');
  const key = (program = '/cache/etcd-1') => fingerprint([program], [folder], /\.yaml$/);
  const before = key();
  writeFileSync(join(folder, 'notes.txt'), 'second');
  expect(key()).toBe(before);
  expect(key('/cache/etcd-2')).not.toBe(before);
  writeFileSync(join(folder, 'kinds.yaml'), 'kind: B');
  const after = key();
  expect(after).not.toBe(before);
  writeFileSync(join(folder, 'more.yaml'), 'kind: A');
  expect(key()).not.toBe(after);
});

it('is not used half-made, after a failure or a kill', async () => {
  const { cache, made, get } = maker();
  const failing = get('0a', folder => {
    writeFileSync(join(folder, 'content'), 'half');
    throw new Error('the disk is full');
  });
  await expect(failing).rejects.toThrow('the disk is full');
  expect(entries(cache)).toEqual([]);
  mkdirSync(join(cache, 'store.unfinished-killed'));
  const folder = await get('0a');
  expect(readFileSync(join(folder, 'content'), 'utf8')).toBe('0a');
  expect(entries(cache)).toEqual(['store-0a']);
  expect(made).toEqual(['0a', '0a']);
});

it('is made by one of two processes, for which the other waits', async () => {
  const cache = emptyFolder();
  const script = `import { appendFileSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { cachedFolder } from './lab/parts/cached-folder.ts';
    const [cache] = process.argv.slice(1);
    const make = async () => {
      appendFileSync(cache + '/makers', 'one\\n');
      await sleep(300);
    };
    console.log(await cachedFolder({ cache, name: 'store', key: '0a', make, now: new Date() }));`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', script, cache];
  const processes = [1, 2].map(() => {
    const child = spawn(process.execPath, args, { cwd: PROJECT, stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    child.stdout.on('data', (text: Buffer) => (output += text.toString()));
    return once(child, 'close').then(() => output.trim());
  });
  const folder = join(cache, 'store-0a');
  expect(await Promise.all(processes)).toEqual([folder, folder]);
  expect(readFileSync(join(cache, 'makers'), 'utf8')).toBe('one\n');
});

it('removes those that no run has used for 30 days when it makes another', async () => {
  const { cache, get } = maker();
  const age = async (key: string, days: number) => {
    const folder = await get(key);
    const at = new Date(now.getTime() - days * DAY_MS);
    utimesSync(join(folder, 'used'), at, at);
  };
  await age('0a', 31);
  await age('0b', 29);
  mkdirSync(join(cache, 'stores-0c'));
  expect(basename(await get('0d'))).toBe('store-0d');
  expect(entries(cache)).toEqual(['store-0b', 'store-0d', 'stores-0c']);
});
