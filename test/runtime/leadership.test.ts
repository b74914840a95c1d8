import { describe, expect, it } from 'vitest';
import { releaseOf } from '../../src/store/lease.ts';
import { Leaders } from '../support/runtime/leaders.ts';
import type { ProcessOptions } from '../support/runtime/leaders.ts';

/** Processes with a released lease, so that the first of them leads at once. */
function released(): Leaders {
  const leaders = new Leaders();
  leaders.memory.author.put(releaseOf({ holder: 'before', durationMs: 10_000, transitions: 0 }));
  return leaders;
}

/** A leader and a standby, 10 s after the first began. */
async function two(first: ProcessOptions = {}, second: ProcessOptions = {}) {
  const leaders = released();
  const a = leaders.start('a', first);
  await leaders.clock.advance(5000);
  const b = leaders.start('b', second);
  await leaders.clock.advance(5000);
  expect([a.leadership.isHeld(), b.leadership.isHeld()]).toEqual([true, false]);
  a.events.length = 0;
  return { leaders, clock: leaders.clock, a, b };
}

async function leaseOf({ memory }: Leaders) {
  const lease = await memory.lease.read(new AbortController().signal);
  if (!lease) throw new Error('there is no lease');
  return lease;
}

describe('leadership', () => {
  it('is gained without a lease once a new one is unchanged for its duration', async () => {
    const leaders = new Leaders();
    const { leadership, events } = leaders.start('a');
    await leaders.clock.advance(9900);
    expect([leadership.isHeld(), leadership.signal().aborted, events]).toEqual([false, true, []]);
    expect(await leaseOf(leaders)).toMatchObject({ holder: '', durationMs: 10_000 });
    await leaders.clock.advance(200);
    expect([leadership.isHeld(), leadership.signal().aborted, events]).toEqual([
      true,
      false,
      ['leads as 1 at 10'],
    ]);
  });

  it.each(['failing', 'losing requests', 'losing answers'] as const)(
    'is never held by two if the lease is deleted while the network of the leader is %s and another begins',
    async network => {
      const { leaders, clock, a, b } = await two();
      await b.leadership.stop();
      a.path.network = network;
      leaders.memory.author.remove();
      const c = leaders.start('c');
      for (let moments = 0; moments < 100; moments++) {
        await clock.advance(200);
        expect([a.leadership.isHeld(), c.leadership.isHeld()]).not.toEqual([true, true]);
      }
      expect([a.leadership.isHeld(), c.leadership.isHeld()]).toEqual([false, true]);
    },
  );

  it('is not taken by a process that is not ready, and soon after it is', async () => {
    const leaders = new Leaders();
    let isReady = false;
    const a = leaders.start('a', { isReady: () => isReady });
    await leaders.clock.advance(60_000);
    expect([a.events, a.path.write]).toEqual([[], 0]);
    const b = leaders.start('b');
    await leaders.clock.advance(11_000);
    isReady = true;
    await leaders.clock.advance(5000);
    expect([a.events, b.events]).toEqual([[], ['leads as 1 at 70']]);
    await b.leadership.stop();
    await leaders.clock.advance(2300);
    expect(a.events).toEqual([expect.stringMatching(/^leads as 2 at 7[6-8]/)]);
  });

  it('is kept by a leader that is no longer ready', async () => {
    const leaders = released();
    let isReady = true;
    const a = leaders.start('a', { isReady: () => isReady });
    await leaders.clock.advance(5000);
    isReady = false;
    await leaders.clock.advance(60_000);
    expect([a.leadership.isHeld(), a.events]).toEqual([true, ['leads as 1 at 0']]);
  });

  it('is kept for days', async () => {
    const { clock, a, b } = await two();
    await clock.advance(100_000);
    expect([a.leadership.isHeld(), b.leadership.isHeld(), a.events, b.events]).toEqual([true, false, [], []]);
  });

  it('sends about 30 requests a minute for the lease: writes if it is the leader, else reads', async () => {
    const { clock, a, b } = await two();
    const before = [{ ...a.path }, { ...b.path }] as const;
    await clock.advance(600_000);
    expect(a.path.read).toBe(before[0].read);
    expect(b.path.write).toBe(before[1].write);
    for (const perMinute of [(a.path.write - before[0].write) / 10, (b.path.read - before[1].read) / 10]) {
      expect(perMinute).toBeGreaterThan(27);
      expect(perMinute).toBeLessThan(34);
    }
  });

  it('is lost before another acquires it, if the lease can no longer be reached', async () => {
    const { clock, a, b } = await two();
    a.path.network = 'failing';
    await clock.advance(13_000);
    expect([a.events, b.events]).toEqual([
      [expect.stringMatching(/^ends because lost at 1[5-7]/)],
      [expect.stringMatching(/^leads as 2 at (18|19|20|21)/)],
    ]);
  });

  it.each(['losing requests', 'losing answers'] as const)(
    'is lost in time while the network is %s',
    async network => {
      const { clock, a, b } = await two();
      a.path.network = network;
      const signal = a.leadership.signal();
      await clock.advance(7000);
      expect([a.leadership.isHeld(), signal.aborted, a.events.length]).toEqual([false, true, 1]);
      expect(b.events).toEqual([]);
      await clock.advance(10_000);
      expect([b.leadership.isHeld(), a.leadership.isHeld()]).toEqual([true, false]);
    },
  );

  it('survives some requests that fail or are not answered', async () => {
    const { clock, a, b } = await two();
    for (const network of ['failing', 'losing requests', 'losing answers', 'failing'] as const) {
      a.path.network = network;
      await clock.advance(1500);
      a.path.network = 'working';
      await clock.advance(5000);
    }
    expect([a.leadership.isHeld(), a.events, b.events]).toEqual([true, [], []]);
  });

  it('is not held from the first moment after a process was frozen', async () => {
    const leaders = released();
    let frozenMs = 0;
    const { clock } = leaders;
    const own = {
      now: () => clock.now() + frozenMs,
      after: clock.after.bind(clock),
      soon: clock.soon.bind(clock),
    };
    const { leadership, events } = leaders.start('a', { clock: own });
    await clock.advance(5000);
    const signal = leadership.signal();
    expect([leadership.isHeld(), signal.aborted]).toEqual([true, false]);
    frozenMs = 20_000;
    expect([leadership.isHeld(), leadership.signal().aborted, events]).toEqual([
      false,
      true,
      ['leads as 1 at 0'],
    ]);
    await clock.advance(3000);
    expect(signal.aborted).toBe(true);
    expect(events.slice(1)).toEqual([
      expect.stringMatching(/^ends because lost/),
      expect.stringMatching(/^leads as 2/),
    ]);
  });

  it('begins again, with a higher number, if its old lease was not taken and all of the old term has ended', async () => {
    const leaders = released();
    const a = leaders.start('a', { workEnds: { afterMs: 900 } });
    await leaders.clock.advance(10_000);
    a.path.network = 'failing';
    await leaders.clock.advance(10_000);
    a.path.network = 'working';
    await leaders.clock.advance(10_000);
    expect(a.events).toEqual([
      'leads as 1 at 0',
      expect.stringMatching(/^ends because lost at 1[5-7]/),
      expect.stringMatching(/^leads as 2 at 2/),
    ]);
  });

  it.each([
    ['never ends', 'never'],
    ['ends too late', { afterMs: 1100 }],
    ['fails to end', 'with an error'],
  ] as const)(
    'calls mustExit if the work of the leader %s, and is never held again',
    async (_what, manner) => {
      const { leaders, clock, a, b } = await two({ workEnds: manner });
      a.path.network = 'failing';
      await clock.advance(8000);
      expect(a.events).toEqual([
        expect.stringMatching(/^ends because lost/),
        expect.stringMatching(/^must exit .the work of the leader did not end/),
      ]);
      a.path.network = 'working';
      await clock.advance(3000);
      await b.leadership.stop();
      await clock.advance(100_000);
      expect([a.leadership.isHeld(), a.events.length]).toEqual([false, 2]);
      expect(leaders.clock.timers).toBe(0);
    },
  );

  it('calls mustExit if the work of the leader cannot start', async () => {
    const leaders = released();
    const a = leaders.start('a', {
      lead: () => {
        throw new Error('no');
      },
    });
    await leaders.clock.advance(5000);
    expect(a.events).toEqual(['must exit (the work of the leader did not start) at 0']);
    expect(a.leadership.isHeld()).toBe(false);
    await a.leadership.stop();
  });

  it('is lost at the next read if the lease was edited to another holder, which is respected', async () => {
    const { leaders, clock, a, b } = await two();
    leaders.memory.author.put({ holder: 'another', durationMs: 10_000, transitions: 7 });
    await clock.advance(3000);
    expect(a.events).toEqual([expect.stringMatching(/^ends because lost at 1[0-3]/)]);
    await clock.advance(15_000);
    const events = [...a.events.slice(1), ...b.events];
    expect(events).toEqual([expect.stringMatching(/^leads as 8 at 2/)]);
  });

  it.each<readonly [string, (leaders: Leaders) => void]>([
    ['deleted', ({ memory }) => memory.author.remove()],
    ['emptied', ({ memory }) => memory.author.put({ holder: '', durationMs: 0, transitions: 0 })],
  ])('is kept if the lease is %s by hand', async (_what, edit) => {
    const { leaders, clock, a, b } = await two();
    edit(leaders);
    await clock.advance(60_000);
    expect([a.leadership.isHeld(), a.events, b.events]).toEqual([true, [], []]);
    expect((await leaseOf(leaders)).holder).toMatch(/^a_/);
  });

  it('is one process’s even if both have the same name', async () => {
    const leaders = new Leaders();
    const both = [leaders.start('same'), leaders.start('same')];
    await leaders.clock.advance(60_000);
    expect(both.filter(({ leadership }) => leadership.isHeld())).toHaveLength(1);
    expect(both.flatMap(({ events }) => events)).toHaveLength(1);
  });
});

describe('stopping', () => {
  it('releases the lease, so that another leads within a retry period', async () => {
    const { clock, a, b } = await two();
    await a.leadership.stop();
    await clock.advance(2200);
    expect([a.events, a.leadership.isHeld(), a.leadership.signal().aborted]).toEqual([
      ['ends because stopping at 10'],
      false,
      true,
    ]);
    expect(b.events).toEqual([expect.stringMatching(/^leads as 2 at 1[0-2]/)]);
  });

  it('keeps the lease until the work of the leader has ended', async () => {
    const { clock, a, b } = await two({ workEnds: { afterMs: 60_000 } });
    const signal = a.leadership.signal();
    const stopped = a.leadership.stop();
    await clock.advance(59_000);
    expect([a.leadership.isHeld(), signal.aborted, b.events]).toEqual([true, false, []]);
    await clock.advance(4000);
    await stopped;
    expect([a.leadership.isHeld(), signal.aborted]).toEqual([false, true]);
    expect(b.events).toEqual([expect.stringMatching(/^leads as 2 at 7/)]);
  });

  it('does not release the lease if the work of the leader failed to end', async () => {
    const { leaders, a } = await two({ workEnds: 'with an error' });
    await a.leadership.stop();
    expect([(await leaseOf(leaders)).holder.slice(0, 1), a.leadership.isHeld()]).toEqual(['a', false]);
  });

  it('ends the work of the leader at once if leadership is lost during the grace period', async () => {
    const { leaders, clock, a } = await two({ workEnds: { afterMs: 60_000 } });
    void a.leadership.stop();
    await clock.advance(5000);
    a.path.network = 'failing';
    await clock.advance(9000);
    expect(a.events).toEqual([
      'ends because stopping at 10',
      expect.stringMatching(/^ends because lost/),
      expect.stringMatching(/^must exit/),
    ]);
    expect((await leaseOf(leaders)).holder).not.toBe('');
  });

  it('changes nothing where another leads, and ends all timers', async () => {
    const { leaders, clock, a, b } = await two();
    const before = b.path.write;
    await b.leadership.stop();
    expect(b.path.write).toBe(before);
    await a.leadership.stop();
    await clock.advance(100_000);
    expect([clock.timers, b.events, (await leaseOf(leaders)).holder]).toEqual([0, [], '']);
  });

  it('releases a lease whose answer was pending', async () => {
    const leaders = released();
    let hold: (() => void) | undefined;
    const { lease } = leaders.memory;
    const a = leaders.start('a', {
      lease: {
        read: signal => lease.read(signal),
        write: async (...all) => {
          const answer = await lease.write(...all);
          await new Promise<void>(resolve => (hold = resolve));
          return answer;
        },
      },
    });
    await leaders.clock.advance(500);
    const stopped = a.leadership.stop();
    hold?.();
    await leaders.clock.settle();
    hold?.();
    await stopped;
    expect([a.events, await leaseOf(leaders)]).toEqual([
      [],
      expect.objectContaining(releaseOf(await leaseOf(leaders))),
    ]);
  });

  it('ends even if the lease can no longer be reached', async () => {
    const { clock, a } = await two();
    a.path.network = 'losing requests';
    const stopped = a.leadership.stop();
    await clock.advance(5100);
    await stopped;
    expect(a.messages()).toContain('cannot release the lease: it will expire');
  });

  it('can be called twice', async () => {
    const { a } = await two();
    await Promise.all([a.leadership.stop(), a.leadership.stop()]);
    expect(a.events).toHaveLength(1);
  });
});

describe('leadership shows', () => {
  it('in a gauge, among the activities and in a log line for each change', async () => {
    const { clock, a, b } = await two();
    expect([await a.gauge(), await b.gauge()]).toEqual([1, 0]);
    expect(a.activities()).toEqual(['this process leader']);
    expect(b.activities()).toEqual([expect.stringMatching(/^a_[0-9a-f]{16} holder at the last change/)]);
    a.path.network = 'failing';
    await clock.advance(20_000);
    expect([await a.gauge(), await b.gauge()]).toEqual([0, 1]);
    a.path.network = 'working';
    await clock.advance(20_000);
    expect(a.messages()).toEqual([
      'became leader',
      'cannot read the lease',
      'lost leadership',
      'can read the lease again',
      'another process holds the lease',
    ]);
    expect(b.messages()).toEqual(['another process holds the lease', 'became leader']);
    await a.leadership.stop();
    expect(a.activities()).toEqual([]);
  });

  it.each([
    ['the leader', 'losing requests'],
    ['the leader', 'losing answers'],
    ['the leader', 'failing'],
    ['a standby', 'losing requests'],
    ['a standby', 'failing'],
  ] as const)(
    'no failure where a single request of %s fails by a network that is %s',
    async (who, network) => {
      const { clock, a, b } = await two();
      const { path } = who === 'the leader' ? a : b;
      const before = path.read + path.write;
      path.network = network;
      while (path.read + path.write === before) await clock.advance(10);
      path.network = 'working';
      await clock.advance(60_000);
      expect([a.leadership.isHeld(), a.messages(), b.messages()]).toEqual([
        true,
        ['became leader'],
        ['another process holds the lease'],
      ]);
    },
  );

  it('once, however long it may read the lease and not write it', async () => {
    const { clock, a } = await two();
    a.path.network = 'read-only';
    await clock.advance(60_000);
    a.path.network = 'working';
    const leaders = new Leaders();
    const alone = leaders.start('alone');
    alone.path.network = 'read-only';
    await leaders.clock.advance(300_000);
    alone.path.network = 'working';
    await leaders.clock.advance(20_000);
    expect([a.messages(), alone.messages()]).toEqual([
      ['became leader', 'cannot write the lease', 'lost leadership', 'another process holds the lease'],
      ['cannot write the lease', 'can write the lease again', 'became leader'],
    ]);
  });

  it('no holder where the lease was released', async () => {
    const { clock, leaders, a, b } = await two();
    await Promise.all([b.leadership.stop(), a.leadership.stop()]);
    const c = leaders.start('c');
    await clock.advance(1000);
    expect(c.messages()).toEqual(['became leader']);
  });
});
