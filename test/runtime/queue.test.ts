import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/runtime/clock.ts';
import type { Cause, Outcome } from '../../src/runtime/queue/queue.ts';
import { Queue } from '../../src/runtime/queue/queue.ts';
import type { ControlledWork } from '../support/runtime/controlled-work.ts';
import { noObserver, queueOf } from '../support/runtime/controlled-queue.ts';
import { namespaceOf } from '../support/runtime/queue-model.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** A queue in which a key is in the state of the row. */
async function queueWithKeyAt(place: 'unknown' | 'background' | 'running' | 'later' | 'backoff') {
  const parts = queueOf({ concurrency: place === 'background' ? 0 : 1 });
  parts.queue.start();
  if (place === 'background') parts.queue.add('a', 'first');
  if (place !== 'unknown' && place !== 'background') {
    parts.queue.add('a', 'change');
    await parts.clock.settle();
  }
  if (place === 'later') await parts.work.end('a', { requeue: 'after', ms: 60_000 });
  if (place === 'backoff') await parts.work.reject('a', new Error('no'));
  return parts;
}

const empty = { live: 0, background: 0, delayed: 0, running: 0 };

describe('a key', () => {
  it('runs once, however often it is added while it is queued', async () => {
    const { clock, work, queue } = queueOf();
    for (let n = 0; n < 100; n++) queue.add('a', 'change');
    queue.start();
    await clock.settle();
    await work.end('a');
    expect(work.started).toEqual(['a']);
    expect(queue.state()).toEqual(empty);
  });

  it('runs again after its run when it is added during its run', async () => {
    const { clock, work, queue } = queueOf({ concurrency: 10 });
    queue.start();
    queue.add('a', 'change');
    await clock.settle();
    for (let n = 0; n < 100; n++) queue.add('a', 'change');
    await clock.advance(3_600_000);
    expect(work.started).toEqual(['a']);
    await work.end('a');
    expect(work.started).toEqual(['a', 'a']);
    await work.end('a');
    expect(work.started).toEqual(['a', 'a']);
  });

  it('does not run inside the call that adds it', () => {
    const { work, queue } = queueOf();
    queue.start();
    queue.add('a', 'change');
    expect(work.started).toEqual([]);
  });

  it('runs in the order in which keys were added', async () => {
    const { clock, work, queue } = queueOf();
    for (const key of ['c', 'a', 'b', 'a', 'c']) queue.add(key, 'change');
    queue.start();
    await clock.settle();
    for (const key of ['c', 'a', 'b']) await work.end(key);
    expect(work.started).toEqual(['c', 'a', 'b']);
  });

  it('waits until the queue starts', async () => {
    const { clock, work, queue } = queueOf();
    queue.add('a', 'change');
    await clock.advance(3_600_000);
    expect(work.started).toEqual([]);
  });

  it.each<[Parameters<typeof queueWithKeyAt>[0], Cause, Partial<typeof empty>]>([
    ['unknown', 'change', { running: 1 }],
    ['unknown', 'first', { running: 1 }],
    ['unknown', 'resync', { running: 1 }],
    ['background', 'change', { live: 1 }],
    ['background', 'first', { background: 1 }],
    ['background', 'resync', { background: 1 }],
    ['running', 'change', { running: 1 }],
    ['running', 'resync', { running: 1 }],
    ['later', 'change', { running: 1 }],
    ['later', 'first', { running: 1 }],
    ['later', 'resync', { running: 1 }],
    ['backoff', 'change', { running: 1 }],
    ['backoff', 'first', { running: 1 }],
    ['backoff', 'resync', { delayed: 1 }],
  ])('that is %s and is added because of %s is then %o', async (place, cause, expected) => {
    const { clock, queue } = await queueWithKeyAt(place);
    queue.add('a', cause);
    await clock.settle();
    expect(queue.state()).toEqual({ ...empty, ...expected });
  });

  it.each<[readonly Cause[], Partial<typeof empty>]>([
    [['change'], { live: 1 }],
    [['first'], { background: 1 }],
    [['resync'], {}],
    [['first', 'change'], { live: 1 }],
    [['change', 'first'], { live: 1 }],
  ])('that is added during its run because of %o is afterwards %o', async (causes, expected) => {
    const { clock, work, queue } = queueOf();
    queue.start();
    for (const key of ['a', 'other']) queue.add(key, 'change');
    await clock.settle();
    for (const cause of causes) queue.add('a', cause);
    await work.end('a');
    expect(work.running).toEqual(['other']);
    expect(queue.state()).toEqual({ ...empty, running: 1, ...expected });
  });
});

describe('keys of the first reading', () => {
  it('wait behind live changes, but one in ten is theirs', async () => {
    const { clock, work, queue } = queueOf();
    for (let n = 0; n < 3; n++) queue.add(`first-${n}`, 'first');
    for (let n = 0; n < 20; n++) queue.add(`live-${n}`, 'change');
    queue.start();
    await clock.settle();
    while (work.running[0] !== undefined) await work.end(work.running[0]);
    const places = work.started.flatMap((key, at) => (key.startsWith('first') ? [`${key} at ${at}`] : []));
    expect(places).toEqual(['first-0 at 9', 'first-1 at 19', 'first-2 at 22']);
  });

  it('are lifted by a change', async () => {
    const { clock, work, queue } = queueOf();
    for (const key of ['a', 'b', 'c']) queue.add(key, 'first');
    queue.add('b', 'change');
    queue.start();
    await clock.settle();
    while (work.running[0] !== undefined) await work.end(work.running[0]);
    expect(work.started).toEqual(['b', 'a', 'c']);
  });

  it('stay in the background when they are tried again', async () => {
    const { clock, work, queue } = queueOf();
    queue.start();
    queue.add('a', 'first');
    queue.add('busy', 'first');
    await clock.settle();
    await work.reject('a', new Error('no'));
    await clock.advance(5);
    expect(queue.state()).toEqual({ ...empty, background: 1, running: 1 });
  });
});

describe('a run without success', () => {
  it.each<[string, (work: ControlledWork) => Promise<void>]>([
    ['returns with-backoff', work => work.end('a', { requeue: 'with-backoff' })],
    ['rejects', work => work.reject('a', new Error('no'))],
    ['rejects with nothing at all', work => work.reject('a', undefined)],
  ])('that %s is repeated after 5 ms, twice as long each time, and at most 1000 s', async (_how, fail) => {
    const { clock, work, queue } = queueOf();
    queue.start();
    queue.add('a', 'change');
    await clock.settle();
    const waits: number[] = [];
    for (let failures = 1; failures <= 21; failures++) {
      await fail(work);
      const failedAt = clock.now();
      await clock.advance(1_000_000);
      waits.push((work.times.at(-1) ?? 0) - failedAt);
    }
    const doubled = Array.from({ length: 18 }, (_, n) => 5 * 2 ** n);
    expect(waits).toEqual([...doubled, 1_000_000, 1_000_000, 1_000_000]);
  });

  it('is forgotten after one success', async () => {
    const { clock, work, queue } = queueOf();
    queue.start();
    queue.add('a', 'change');
    await clock.settle();
    for (const ms of [5, 10, 20]) {
      await work.reject('a', new Error('no'));
      await clock.advance(ms);
    }
    await work.end('a', { requeue: 'after', ms: 1 });
    await clock.advance(1);
    await work.reject('a', new Error('no'));
    await clock.advance(5);
    expect(work.times).toEqual([0, 5, 15, 35, 36, 41]);
  });

  it('keeps its backoff across a change, which runs without waiting', async () => {
    const { clock, work, queue } = queueOf();
    queue.start();
    queue.add('a', 'change');
    await clock.settle();
    await work.reject('a', new Error('no'));
    queue.add('a', 'change');
    await clock.settle();
    await work.reject('a', new Error('no'));
    await clock.advance(9);
    expect(work.times).toEqual([0, 0]);
    await clock.advance(1);
    expect(work.times).toEqual([0, 0, 10]);
  });

  it('shares 100 retries at once and then 10 a second with all other keys', async () => {
    const { clock, work, queue } = queueOf({ concurrency: 1000 });
    queue.start();
    for (let n = 0; n < 150; n++) queue.add(`key-${n}`, 'change');
    await clock.settle();
    for (const key of work.running) await work.end(key, { requeue: 'with-backoff' });
    await clock.advance(60_000);
    const late = Array.from({ length: 50 }, (_, n) => (n + 1) * 100);
    expect(work.times.slice(150)).toEqual([...Array<number>(100).fill(5), ...late]);
  });

  it('used up by retries does not delay changes and requeues after a time', async () => {
    const { clock, work, queue } = queueOf({ concurrency: 1000 });
    queue.start();
    for (let n = 0; n < 500; n++) queue.add(`key-${n}`, 'change');
    await clock.settle();
    for (const key of work.running) await work.end(key, { requeue: 'with-backoff' });
    queue.add('new', 'change');
    await clock.settle();
    await work.end('new', { requeue: 'after', ms: 7 });
    await clock.advance(7);
    expect(work.times.filter((_time, at) => work.started[at] === 'new')).toEqual([0, 7]);
  });
});

describe('a run that finds away what it needs', () => {
  const away: Outcome = { requeue: 'once-available' };
  const queueWith = async (keys: number) => {
    const scene = queueOf({ concurrency: 1000 });
    scene.queue.start();
    for (let n = 0; n < keys; n++) scene.queue.add(`key-${n}`, 'change');
    await scene.clock.settle();
    for (const key of scene.work.running) await scene.work.end(key, away);
    return scene;
  };

  it('is repeated after 5 ms, twice as long each time, and at most 30 s', async () => {
    const { clock, work } = await queueWith(1);
    const waits: number[] = [];
    for (let failures = 1; failures <= 15; failures++) {
      const failedAt = clock.now();
      await clock.advance(30_000);
      waits.push((work.times.at(-1) ?? 0) - failedAt);
      await work.end('key-0', away);
    }
    expect(waits).toEqual([...Array.from({ length: 13 }, (_, n) => 5 * 2 ** n), 30_000, 30_000]);
  });

  it('is repeated when another finds it, the first at once, and then ten a second', async () => {
    const { clock, work } = await queueWith(31);
    for (let failures = 0; failures < 13; failures++) {
      await clock.advance(60_000);
      for (const key of work.running) await work.end(key, away);
    }
    await clock.advance(30_000);
    const [first = '', ...others] = work.running;
    const [backAt, before] = [clock.now(), work.started.length];
    for (const key of others) await work.end(key, away);
    await work.end(first);
    await clock.advance(20_000);
    expect(work.times.slice(before).map(at => at - backAt)).toEqual(others.map((_key, index) => index * 100));
  });

  it('and fails otherwise afterwards has the backoff of a first failure', async () => {
    const { clock, work } = await queueWith(1);
    for (let failures = 0; failures < 20; failures++) {
      await clock.advance(30_000);
      await work.end('key-0', away);
    }
    await clock.advance(30_000);
    await work.reject('key-0', new Error('no'));
    const before = work.times.length;
    await clock.advance(5);
    expect(work.times.length).toBe(before + 1);
  });
});

describe('a requeue after a time', () => {
  it.each([0, 1, 250, 86_400_000])('comes after %i ms', async ms => {
    const { clock, work, queue } = queueOf();
    queue.start();
    queue.add('a', 'change');
    await clock.settle();
    await work.end('a', { requeue: 'after', ms });
    await clock.advance(Math.max(0, ms - 1));
    expect(work.started.length).toBe(ms === 0 ? 2 : 1);
    await clock.advance(1);
    expect(work.started.length).toBe(2);
  });

  it('is replaced by what the next run plans', async () => {
    const { clock, work, queue } = queueOf();
    queue.start();
    queue.add('a', 'change');
    await clock.settle();
    await work.end('a', { requeue: 'after', ms: 100 });
    queue.add('a', 'change');
    await clock.settle();
    await work.end('a', { requeue: 'on-change' });
    expect(clock.timers).toBe(0);
    await clock.advance(1000);
    expect(work.started).toEqual(['a', 'a']);
  });
});

describe('at once', () => {
  it.each([1, 2, 10])('at most %i keys run', async concurrency => {
    const { clock, work, queue } = queueOf({ concurrency });
    for (let n = 0; n < 30; n++) queue.add(`key-${n}`, 'change');
    queue.start();
    await clock.settle();
    expect(work.running.length).toBe(concurrency);
    await work.end('key-0');
    expect(work.running.length).toBe(concurrency);
    expect(queue.state()).toEqual({ ...empty, live: 29 - concurrency, running: concurrency });
  });
});

describe('a queue that is stopped', () => {
  it('drops queued keys, accepts none, starts none and leaves no timer', async () => {
    const { clock, work, queue } = queueOf();
    queue.start();
    for (const key of ['retried', 'planned', 'running', 'waiting']) queue.add(key, 'change');
    await clock.settle();
    await work.reject('retried', new Error('no'));
    await work.end('planned', { requeue: 'after', ms: 10 });
    queue.add('running', 'change');
    queue.stop();
    queue.add('new', 'change');
    queue.start();
    expect(queue.state()).toEqual({ ...empty, running: 1 });
    await work.end('running', { requeue: 'after', ms: 10 });
    await clock.advance(3_600_000);
    expect(work.started).toEqual(['retried', 'planned', 'running']);
    expect(queue.state()).toEqual(empty);
    expect(clock.timers).toBe(0);
  });

  it('is idle when the last run has ended', async () => {
    const { clock, work, queue } = queueOf({ concurrency: 2 });
    queue.start();
    for (const key of ['a', 'b']) queue.add(key, 'change');
    await clock.settle();
    queue.stop();
    let isIdle = false;
    const idle = queue.whenIdle().then(() => (isIdle = true));
    await work.end('a');
    expect(isIdle).toBe(false);
    await work.end('b');
    await idle;
    await queue.whenIdle();
    expect(isIdle).toBe(true);
  });
});

describe('work that is not as it should be', () => {
  it.each<[string, (key: string) => Promise<Outcome>]>([
    [
      'throws before it waits',
      () => {
        throw new Error('no');
      },
    ],
    ['returns an object whose then throws', () => ({ then: () => void JSON.parse('{') }) as never],
  ])('and %s counts as a run without success', async (_how, work) => {
    const clock = new VirtualClock();
    const queue = new Queue<string>({ clock, work, concurrency: 1, observer: noObserver, namespaceOf });
    queue.start();
    queue.add('a', 'change');
    await clock.settle();
    expect(queue.state()).toEqual({ ...empty, delayed: 1 });
  });
});

describe('an observer', () => {
  it('is notified of adds, waiting times and retries', async () => {
    const notified: string[] = [];
    const { clock, work, queue } = queueOf({
      observer: {
        added: () => void notified.push('added'),
        waited: ms => void notified.push(`waited ${ms}`),
        retried: () => void notified.push('retried'),
      },
    });
    queue.add('a', 'change');
    queue.add('a', 'change');
    await clock.advance(40);
    queue.start();
    await clock.settle();
    await work.reject('a', new Error('no'));
    await clock.advance(5);
    expect(notified).toEqual(['added', 'waited 40', 'retried', 'added', 'waited 0']);
  });
});

describe('10,000 keys', () => {
  it('each run once, without blocking the event loop', async () => {
    const seen = new Set<string>();
    const work = (key: string): Promise<Outcome> => {
      seen.add(key);
      return Promise.resolve({ requeue: 'on-change' });
    };
    const queue = new Queue<string>({
      clock: systemClock,
      work,
      concurrency: 10,
      observer: noObserver,
      namespaceOf,
    });
    let turns = 0;
    const turn = () => {
      if (seen.size < 10_000) setImmediate(turn);
      turns++;
    };
    for (let n = 0; n < 10_000; n++) queue.add(`MeshEndpoints/default/web-${n}`, 'first');
    queue.start();
    turn();
    await new Promise<void>(function look(resolve) {
      if (seen.size === 10_000) resolve();
      else setImmediate(look, resolve);
    });
    expect(queue.state().live + queue.state().background).toBe(0);
    expect(turns).toBeGreaterThan(500);
  });
});
