import { describe, expect, it } from 'vitest';
import { FairLimit } from '../../src/api/fair-limit.ts';

/** A limit whose tasks a test ends; `running` has their names in the order of their starts. */
function limited(max: number) {
  const limit = new FairLimit(max);
  const running: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (path: string, name: string) =>
    limit.run(path.split('/'), () => {
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

const startMany = (run: (path: string, name: string) => void, path: string) => {
  for (let task = 0; task < 300; task++) run(path, `${path}#${task}`);
};
const countIn = (running: readonly string[], path: string) =>
  running.filter(name => name.startsWith(path)).length;

describe('groups of groups', () => {
  it('lose nothing where one group is alone', () => {
    const { running, run } = limited(256);
    startMany(run, 'tailnet/team/slow');
    expect(running).toHaveLength(128);
    startMany(run, 'tailnet/team/quick');
    expect(running).toHaveLength(192);
  });

  it('leave a fifth of all for others, however many there are', () => {
    const { running, run } = limited(256);
    for (let team = 0; team < 50; team++) startMany(run, `one/team-${team}/slow`);
    expect(running.length).toBeLessThanOrEqual(205);
    startMany(run, 'other/team/slow');
    expect(countIn(running, 'other/')).toBeGreaterThanOrEqual(25);
  });

  it('have room at once for one more group, when the tasks that took their places have ended', async () => {
    const { running, run, end } = limited(256);
    for (let team = 0; team < 10; team++) startMany(run, `one/team-${team}/slow`);
    for (const name of [...running]) await end(name);
    expect(countIn(running, 'one/team-0/')).toBeLessThan(30);
    startMany(run, 'one/quiet/slow');
    expect(countIn(running, 'one/quiet/')).toBeGreaterThan(1);
  });

  it('take turns, and so do the groups in them', async () => {
    const { running, run, end } = limited(1);
    run('a/x', 'ax0');
    for (const name of ['ax1', 'ax2', 'ax3', 'ay1', 'ay2', 'bx1', 'bx2'])
      run(`${name.charAt(0)}/${name.charAt(1)}`, name);
    const order: string[] = [];
    for (let name = running[0]; name; name = running[0]) {
      order.push(name);
      await end(name);
    }
    expect(order).toEqual(['ax0', 'ax1', 'bx1', 'ay1', 'bx2', 'ax2', 'ay2', 'ax3']);
  });
});
