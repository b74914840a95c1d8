import { describe, expect, it } from 'vitest';
import { Resync } from '../../src/runtime/resync.ts';
import type { Ref } from '../../src/api/key.ts';
import type { Outcome } from '../../src/runtime/queue/queue.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';
import { Runtime } from '../support/runtime/runtime.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const PERIOD_MS = 30_000;

/** A resync of a number of keys, and when each of them was added. */
function resyncOf(count: number, periodMs = PERIOD_MS) {
  const clock = new VirtualClock();
  const offers = new Map<string, number[]>();
  const gone = new Set<string>();
  const offer = (key: string) => {
    offers.set(key, [...(offers.get(key) ?? []), clock.now()]);
    return !gone.has(key);
  };
  const resync = new Resync<string>({ clock, periodMs, enqueue: offer });
  for (let n = 0; n < count; n++) resync.keep(`MeshEndpoints/team-${n % 7}/web-${n}`);
  return { clock, offers, gone, resync };
}

describe('a resync', () => {
  it('offers each key once in every period, always a period after the last time', async () => {
    const { clock, offers, resync } = resyncOf(500);
    resync.start();
    await clock.advance(10 * PERIOD_MS);
    const gaps = [...offers.values()].flatMap(times =>
      times.slice(1).map((time, at) => time - (times[at] ?? 0)),
    );
    expect(offers.size).toBe(500);
    expect([...offers.values()].map(times => times.length)).toEqual(Array(500).fill(10));
    expect(new Set(gaps)).toEqual(new Set([PERIOD_MS]));
  });

  it.each(['before', 'after'])(
    'spreads similar keys that come %s it starts evenly over the period',
    async when => {
      const { clock, offers, resync } = resyncOf(0);
      if (when === 'after') resync.start();
      for (let n = 0; n < 10_000; n++) resync.keep(`MeshEndpoints/default/web-${n}`);
      if (when === 'before') resync.start();
      await clock.advance(PERIOD_MS);
      const perMoment = new Map<number, number>();
      for (const [time = 0] of offers.values()) perMoment.set(time, (perMoment.get(time) ?? 0) + 1);
      expect(perMoment.size).toBe(256);
      expect(Math.max(...perMoment.values())).toBeLessThan(80);
    },
  );

  it('offers a key only once when it was kept from its work for several periods', async () => {
    const { clock, offers, resync } = resyncOf(100);
    resync.start();
    await clock.skip(5.5 * PERIOD_MS);
    expect([...offers.values()].map(times => times.length)).toEqual(Array(100).fill(1));
    await clock.advance(PERIOD_MS);
    expect([...offers.values()].map(times => times.length)).toEqual(Array(100).fill(2));
  });

  it.each([1, 7, 45_678, 86_400_000])('keeps to a period of %i ms', async periodMs => {
    const { clock, offers, resync } = resyncOf(20, periodMs);
    await clock.advance(0.1);
    resync.start();
    await clock.advance(3 * periodMs);
    expect([...offers.values()].map(times => times.length)).toEqual(Array(20).fill(3));
  });

  it('drops a key without an object, until it is added again', async () => {
    const { clock, offers, gone, resync } = resyncOf(1);
    const key = 'MeshEndpoints/team-0/web-0';
    gone.add(key);
    resync.start();
    await clock.advance(3 * PERIOD_MS);
    expect(offers.get(key)?.length).toBe(1);
    gone.clear();
    resync.keep(key);
    await clock.advance(3 * PERIOD_MS);
    expect(offers.get(key)?.length).toBe(4);
  });

  it('offers a key that comes late for the first time at most a period later', async () => {
    const { clock, offers, resync } = resyncOf(0);
    resync.start();
    await clock.advance(100);
    resync.keep('late');
    await clock.advance(4 * PERIOD_MS);
    const times = [100, ...(offers.get('late') ?? [])];
    const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0));
    expect(gaps.length).toBeGreaterThanOrEqual(4);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(PERIOD_MS);
  });

  it.each(['before', 'after'])('enqueues nothing when it was stopped %s it started', async when => {
    const { clock, offers, resync } = resyncOf(10);
    if (when === 'after') resync.start();
    resync.stop();
    if (when === 'before') resync.start();
    await clock.advance(3 * PERIOD_MS);
    expect([...offers]).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});

describe('a controller in which nothing changes', () => {
  const web = (n: number) => named(meshEndpoints(), `default/web-${n}`);

  /** How often each of `count` objects is reconciled in ten minutes, after the first time. */
  async function reconcileCounts(count: number, reconcile: (ref: Ref, runtime: Runtime) => Promise<Outcome>) {
    const seen = new Map<string, number>();
    const runtime = new Runtime(Array.from({ length: count }, (_, n) => web(n)));
    runtime.start(
      {
        kind: 'MeshEndpoints',
        reconcile: ref => {
          seen.set(ref.name, (seen.get(ref.name) ?? 0) + 1);
          return reconcile(ref, runtime);
        },
      },
      { syncPeriodMs: PERIOD_MS },
    );
    await runtime.memory.start();
    await runtime.clock.settle();
    seen.clear();
    await runtime.clock.advance(600_000);
    return { runtime, seen };
  }

  it('reconciles every object once in every period', async () => {
    const { seen } = await reconcileCounts(50, () => Promise.resolve({ requeue: 'on-change' }));
    expect([...seen.values()]).toEqual(Array(50).fill(20));
  });

  it('reconciles also objects that are requeued much later', async () => {
    const { seen } = await reconcileCounts(5, () => Promise.resolve({ requeue: 'after', ms: 86_400_000 }));
    expect([...seen.values()]).toEqual(Array(5).fill(20));
  });

  it('leaves those that are in backoff alone', async () => {
    const { seen } = await reconcileCounts(1, () => Promise.resolve({ requeue: 'with-backoff' }));
    const within = Array.from({ length: 30 }, (_, n) => 5 * (2 ** (n + 1) - 1)).filter(ms => ms <= 600_000);
    expect(seen.get('web-0')).toBe(within.length);
  });

  it('does not pile up when runs are slow, and reconciles every object', async () => {
    const slow = async (_ref: Ref, { clock }: Runtime): Promise<Outcome> => {
      await new Promise<void>(resolve => void clock.after(10_000, resolve));
      return { requeue: 'on-change' };
    };
    const { runtime, seen } = await reconcileCounts(100, slow);
    const counts = [...seen.values()];
    expect(counts.length).toBe(100);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(590);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(2);
    expect(await runtime.metric('workqueue_depth')).toBeLessThanOrEqual(90);
  });
});
