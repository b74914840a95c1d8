import { describe, expect, it } from 'vitest';
import { Priorities } from '../../src/runtime/queue/priorities.ts';
import type { Cause } from '../../src/runtime/queue/queue.ts';
import { queueOf } from '../support/runtime/controlled-queue.ts';
import { namespaceOf } from '../support/runtime/queue-model.ts';

describe('a namespace', () => {
  it('with 2,000 queued keys delays a key of another one by one run', async () => {
    const { clock, work, queue } = queueOf();
    for (let n = 0; n < 2_000; n++) queue.add(`attacker/${n}`, 'change');
    queue.start();
    await clock.settle();
    queue.add('victim/web', 'change');
    for (const key of ['attacker/0', 'attacker/1']) await work.end(key);
    expect(work.started).toEqual(['attacker/0', 'attacker/1', 'victim/web']);
  });

  it.each<Cause>(['change', 'first'])(
    'runs its keys in turns with others when they are added for %s',
    async cause => {
      const { clock, work, queue } = queueOf();
      const keys = ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'cluster-scoped', 'c/1', 'another-cluster-scoped'];
      for (const key of keys) queue.add(key, cause);
      queue.start();
      await clock.settle();
      while (work.running.length > 0) await work.end(work.running[0] ?? '');
      expect(work.started.join(' ')).toBe('a/1 b/1 cluster-scoped c/1 a/2 b/2 another-cluster-scoped a/3');
    },
  );

  it('whose runs take long has at most half of the runs at once while others wait', async () => {
    const { clock, work, queue } = queueOf({ concurrency: 10 });
    for (let n = 0; n < 100; n++)
      for (const namespace of ['attacker', 'victim']) queue.add(`${namespace}/${n}`, 'change');
    queue.start();
    await clock.settle();
    const runningOf = (namespace: string) => work.running.filter(key => key.startsWith(namespace));
    for (let n = 0; n < 50; n++) await work.end(runningOf('victim')[0] ?? '');
    expect(runningOf('attacker')).toHaveLength(5);
    expect(runningOf('victim')).toHaveLength(5);
  });

  it('may have all runs at once while no other one waits', async () => {
    const { clock, work, queue } = queueOf({ concurrency: 10 });
    for (let n = 0; n < 100; n++) queue.add(`only/${n}`, 'change');
    queue.start();
    await clock.settle();
    expect(work.running).toHaveLength(10);
  });

  it('has its share of runs again when it waits behind one that has all of them', async () => {
    const { clock, work, queue } = queueOf({ concurrency: 10 });
    for (let n = 0; n < 100; n++) queue.add(`attacker/${n}`, 'change');
    queue.start();
    await clock.settle();
    for (let n = 0; n < 10; n++) queue.add(`victim/${n}`, 'change');
    for (let n = 0; n < 5; n++) await work.end(`attacker/${n}`);
    expect(work.started.slice(10)).toEqual(Array.from({ length: 5 }, (_, n) => `victim/${n}`));
  });

  it('gets no more turns by changing its keys while they are queued, or as soon as they have run', async () => {
    const { clock, work, queue } = queueOf();
    for (const key of ['attacker/1', 'victim/1', 'victim/2', 'victim/3']) queue.add(key, 'first');
    queue.start();
    await clock.settle();
    for (let n = 0; n < 6; n++) {
      for (const key of ['attacker/1', 'attacker/2']) queue.add(key, 'first');
      await work.end(work.running[0] ?? '');
    }
    expect(work.started.filter(key => key.startsWith('victim'))).toHaveLength(3);
  });
});

describe('10,000 keys', () => {
  it.each([
    ['of one namespace', 1],
    ['of 10,000 namespaces', 10_000],
    ['of 2,000 namespaces', 2_000],
  ])('%s are queued and run at a constant cost', (_of, namespaces) => {
    const lanes = new Priorities<string>(namespaceOf);
    const hasRoom = () => false;
    const keys = Array.from({ length: 10_000 }, (_, n) => `${n % namespaces}/${n}`);
    const start = process.cpuUsage();
    for (const key of keys) lanes.push(key, 'live');
    for (const key of keys.slice(0, 5_000)) {
      lanes.remove(key, 'live');
      lanes.push(key, 'background');
    }
    // Each is queued again as soon as it has left, so that namespaces come and go.
    for (let n = 0; n < 30_000; n++) lanes.push(lanes.shift(hasRoom) ?? '', 'live');
    let shifted = 0;
    while (lanes.shift(hasRoom) !== undefined) shifted++;
    expect(shifted).toBe(10_000);
    // A cost that grows with the number of keys or namespaces takes tens of seconds.
    expect(process.cpuUsage(start).user / 1_000).toBeLessThan(1_000);
  });
});
