import { expect, it } from 'vitest';
import { FairLimit } from '../../src/api/fair-limit.ts';

/** A limit whose tasks a test ends; `running` has their names in the order of their starts. */
function limited(max: number) {
  const limit = new FairLimit(max);
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (group: string, name: string) =>
    limit.run(group, () => {
      running.push(name);
      return new Promise(resolve => ends.set(name, resolve));
    });
  const end = async (name: string) => {
    running.splice(running.indexOf(name), 1);
    ends.get(name)?.();
    await new Promise(setImmediate);
  };
  return { limit, running, run, end };
}

it('a group takes at most half of the places, and the next one half of the rest', () => {
  const { running, run } = limited(16);
  for (const group of ['a', 'b', 'c']) for (let task = 0; task < 20; task++) run(group, `${group}${task}`);
  const counts = ['a', 'b', 'c'].map(group => running.filter(name => name.startsWith(group)).length);
  expect(counts).toEqual([8, 4, 2]);
});

it('a limit of one runs one task after the other', async () => {
  const { running, run, end } = limited(1);
  run('a', 'a0');
  run('b', 'b0');
  expect(running).toEqual(['a0']);
  await end('a0');
  expect(running).toEqual(['b0']);
});

it('groups take turns, each in the order of its tasks', async () => {
  const { running, run, end } = limited(1);
  run('a', 'a0');
  for (const name of ['a1', 'a2', 'b1', 'b2', 'c1']) run(name.charAt(0), name);
  const order: string[] = [];
  for (let name = running[0]; name; name = running[0]) {
    order.push(name);
    await end(name);
  }
  expect(order).toEqual(['a0', 'a1', 'b1', 'c1', 'a2', 'b2']);
});

it('cleared tasks never run', async () => {
  const { limit, running, run, end } = limited(1);
  run('a', 'a0');
  run('a', 'a1');
  limit.clear();
  await end('a0');
  expect(running).toEqual([]);
});
