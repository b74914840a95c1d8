import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isBuilt, missingOf } from '../../lab/parts/locate.ts';
import type { Binary } from '../../lab/parts/parts.ts';
import { buildAll } from '../../lab/parts/build.ts';
import { emptyFolder, filesBelow, missingPart, shellBuilder, textOnceWritten, untilDead } from './sample.ts';

const BUILD = 'echo "program $2" > "$1"';

it('creates a folder with all programs of a part, and nothing else', async () => {
  const folder = emptyFolder();
  const part = missingPart(folder, 'shop', ['till', 'counter']);
  const { builder, events } = shellBuilder(BUILD);
  expect(await buildAll([part], builder)).toBe(0);
  expect(isBuilt(part)).toBe(true);
  expect(readFileSync(join(part.folder, 'bin/counter'), 'utf8')).toBe('program counter\n');
  expect(filesBelow(part.folder)).toEqual(['bin', 'bin/counter', 'bin/till', 'build.log', 'used']);
  expect(events.map(event => ('binary' in event ? `${event.is} ${event.binary}` : event.is))).toEqual([
    'started till',
    'finished till',
    'started counter',
    'finished counter',
  ]);
});

it('ends the processes of a build when aborted, leaves no incomplete part, and later builds only what is missing', async () => {
  const folder = emptyFolder();
  const part = missingPart(folder, 'shop', ['till', 'counter']);
  const slow = `echo $2 >> ${folder}/builds
    [ $2 = till ] && ${BUILD} && exit
    echo half > "$1"; sleep 60 & echo $! > ${folder}/pid; wait`;
  const first = shellBuilder(slow);
  const building = buildAll([part], first.builder);
  const pid = Number(await textOnceWritten(join(folder, 'pid')));
  first.stop();
  expect(await building).toBe(1);
  await untilDead(pid);
  expect(first.events.at(-1)?.is).toBe('stopped');
  expect(readdirSync(join(part.folder, 'bin'))).toEqual(['till']);

  const second = shellBuilder(`echo $2 >> ${folder}/builds; ${BUILD}`);
  expect(await buildAll([part], second.builder)).toBe(0);
  expect(readFileSync(join(part.folder, 'bin/counter'), 'utf8')).toBe('program counter\n');
  expect(readFileSync(join(folder, 'builds'), 'utf8')).toBe('till\ncounter\ncounter\n');
});

it('builds two parts at a time', async () => {
  const folder = emptyFolder();
  const parts = ['a', 'b', 'c', 'd', 'e'].map(name => missingPart(folder, name, ['one', 'two']));
  // The first two wait for each other: on a busy machine one might end before the other starts.
  const { builder } = shellBuilder(`cd ${folder}; mkdir -p running; touch running/$3 counts
    for try in $(seq 500); do
      [ $(ls running | wc -l) -lt 2 ] && ! grep -q 2 counts || break
      sleep 0.02
    done
    ls running | wc -l >> counts; sleep 0.1; rm running/$3; ${BUILD}`);
  expect(await buildAll(parts, builder)).toBe(0);
  const counts = readFileSync(join(folder, 'counts'), 'utf8').trim().split('\n').map(Number);
  expect(counts).toHaveLength(10);
  expect(Math.max(...counts)).toBe(2);
});

it('builds the smallest set first, in it the longest program first, and never two of one part at a time', async () => {
  const folder = emptyFolder();
  const shop = missingPart(folder, 'shop', ['long', 'later']);
  const stall = missingPart(folder, 'stall', ['short', 'middle']);
  const [long, later] = shop.binaries;
  const [short, middle] = stall.binaries;
  const parts = [
    {
      ...stall,
      binaries: [
        { ...short, cpuSeconds: 1 },
        { ...middle, cpuSeconds: 2 },
      ] as Binary[],
    },
    {
      ...shop,
      binaries: [
        { ...long, cpuSeconds: 3 },
        { ...later, cpuSeconds: 9, set: 'cluster' },
      ] as Binary[],
    },
  ];
  const { builder, events } = shellBuilder(`cd ${folder}; mkdir $3 && ${BUILD} && rmdir $3`);
  expect(await buildAll(parts, builder)).toBe(0);
  const started = events.flatMap(event => (event.is === 'started' ? [event.binary] : []));
  expect(started.slice(0, 2)).toEqual(['long', 'middle']);
  expect(started.slice(2).sort()).toEqual(['later', 'short']);
});

it('builds only the programs that are wanted of a part, and later the others', async () => {
  const folder = emptyFolder();
  const part = missingPart(folder, 'shop', ['till', 'counter']);
  const [till, counter] = part.binaries;
  const first = { ...part, binaries: till ? [till] : [] };
  expect(await buildAll([first], shellBuilder(BUILD).builder)).toBe(0);
  expect([isBuilt(first), isBuilt(part)]).toEqual([true, false]);
  expect(missingOf(part)).toEqual([counter]);
  const { builder, events } = shellBuilder(BUILD);
  expect(await buildAll([part], builder)).toBe(0);
  expect(events.map(({ is }) => is)).toEqual(['started', 'finished']);
  expect(isBuilt(part)).toBe(true);
});

it('names the log of a part that fails, shows its last lines, and builds the others', async () => {
  const folder = emptyFolder();
  const parts = ['bad', 'good', 'fine'].map(name => missingPart(folder, name, ['one']));
  const { builder, events } = shellBuilder(
    `[ $3 != bad ] || { seq 100; echo no such thing >&2; exit 7; }; ${BUILD}`,
  );
  expect(await buildAll(parts, builder)).toBe(1);
  expect(parts.map(isBuilt)).toEqual([false, true, true]);
  const failed = events.find(event => event.is === 'failed');
  expect(failed).toMatchObject({ part: 'bad', reason: 'sh ended with status 7' });
  expect(failed?.lastLines.slice(-2)).toEqual(['100', 'no such thing']);
  expect(readFileSync(failed?.log ?? '', 'utf8')).toMatch(/^1\n2\n(.*\n)*no such thing\n$/);
});

it('fails when a build succeeds without a program', async () => {
  const part = missingPart(emptyFolder(), 'shop', ['till']);
  const { builder, events } = shellBuilder('true');
  expect(await buildAll([part], builder)).toBe(1);
  expect(events.at(-1)).toMatchObject({ is: 'failed', reason: expect.stringContaining('till') as string });
});
