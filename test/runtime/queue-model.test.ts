import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Cause, Outcome } from '../../src/runtime/queue/queue.ts';
import { Queue } from '../../src/runtime/queue/queue.ts';
import { ControlledWork } from '../support/runtime/controlled-work.ts';
import { namespaceOf, QueueModel } from '../support/runtime/queue-model.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** The same steps in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

/** Most keys are in the first one. */
const namespaces = ['a', 'a', 'a', 'b', ''];

type Step =
  | { readonly do: 'add'; readonly key: string; readonly cause: Cause }
  | { readonly do: 'end'; readonly nth: number; readonly outcome: Outcome | 'rejects' }
  | { readonly do: 'release'; readonly nth: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'stop' };

const aKey = fc.nat(14).map(n => `${namespaces[n % namespaces.length]}/key-${n}`);
const anAdd = fc.record({
  do: fc.constant('add' as const),
  key: aKey,
  cause: fc.constantFrom<Cause>('change', 'first', 'first', 'resync'),
});
const aTime = fc.oneof(fc.nat(20), fc.nat(2000), fc.constant(1_000_000));
const anOutcome = fc.oneof(
  fc.constant({ requeue: 'on-change' as const }),
  aTime.map(ms => ({ requeue: 'after' as const, ms })),
  fc.constant({ requeue: 'with-backoff' as const }),
  fc.constant({ requeue: 'once-available' as const }),
  fc.constant('rejects' as const),
);
const anEnd = fc.record({ do: fc.constant('end' as const), nth: fc.nat(9), outcome: anOutcome });
const anAdvance = fc.record({ do: fc.constant('advance' as const), ms: aTime });
const aRelease = fc.record({ do: fc.constant('release' as const), nth: fc.nat(9) });
const aStop = fc.constant({ do: 'stop' as const });

const steps = (withStop: boolean) => {
  const usual = [
    { weight: 5, arbitrary: anAdd },
    { weight: 5, arbitrary: anEnd },
    { weight: 2, arbitrary: anAdvance },
    { weight: 1, arbitrary: aRelease },
  ];
  const all = withStop ? [...usual, { weight: 1, arbitrary: aStop }] : usual;
  return fc.array(fc.oneof(...all), { maxLength: 120, size: 'max' });
};

/** The queue and its model; each step is applied to both. */
class Pair {
  readonly clock = new VirtualClock();
  readonly work = new ControlledWork(this.clock);
  readonly queue: Queue<string>;
  readonly model: QueueModel;
  /** Keys that were added since they last began. */
  readonly unseen = new Set<string>();

  constructor(concurrency: number) {
    const observer = { added: () => undefined, waited: () => undefined, retried: () => undefined };
    const work = (key: string) => {
      this.unseen.delete(key);
      return this.work.perform(key);
    };
    this.queue = new Queue({ clock: this.clock, work, concurrency, observer, namespaceOf });
    this.model = new QueueModel(concurrency);
    this.queue.start();
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'add':
        this.queue.add(step.key, step.cause);
        this.model.add(step.key, step.cause);
        if (step.cause !== 'resync') this.unseen.add(step.key);
        return this.clock.settle();
      case 'end':
        return this.end(this.work.running[step.nth % this.work.running.length], step.outcome);
      case 'release':
        return this.release(this.work.running[step.nth % this.work.running.length]);
      case 'advance':
        await this.clock.advance(step.ms);
        this.model.advance(step.ms);
        return;
      case 'stop':
        this.queue.stop();
        this.model.stop();
        this.unseen.clear();
    }
  }

  release(key: string | undefined): Promise<void> {
    if (key !== undefined) {
      this.queue.release(key);
      this.model.release(key);
    }
    return this.clock.settle();
  }

  async end(key: string | undefined, outcome: Outcome | 'rejects'): Promise<void> {
    if (key === undefined) return;
    this.model.end(key, outcome === 'rejects' ? { requeue: 'with-backoff' } : outcome);
    if (outcome === 'rejects') await this.work.reject(key, new Error('no'));
    else await this.work.end(key, outcome);
    await this.clock.advance(0);
  }

  expectEqual(): void {
    const { waiting, delayed, running, started: begun } = this.model;
    expect(this.work.started.map((key, at) => `${key} at ${this.work.times[at]}`)).toEqual(begun);
    expect(this.work.running).toEqual(running.map(({ key }) => key));
    expect(this.queue.state()).toEqual({
      live: waiting.filter(({ lane }) => lane === 'live').length,
      background: waiting.filter(({ lane }) => lane === 'background').length,
      delayed: delayed.length,
      running: running.length,
    });
  }
}

describe('the queue', () => {
  it('equals its model for any sequence of adds, failures, delays and stops', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      steps(true),
      async (concurrency, all) => {
        const pair = new Pair(concurrency);
        for (const step of all) {
          await pair.take(step);
          pair.expectEqual();
        }
      },
    );
    await fc.assert(property, { seed, numRuns: 1000 });
  });

  it('has run every key since it was last added when it becomes idle, and then holds no key', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      steps(false),
      async (concurrency, all) => {
        const pair = new Pair(concurrency);
        for (const step of all) await pair.take(step);
        while (Object.values(pair.queue.state()).some(count => count > 0)) {
          await pair.take({ do: 'end', nth: 0, outcome: { requeue: 'on-change' } });
          await pair.take({ do: 'advance', ms: 1_000_000 });
        }
        expect([...pair.unseen]).toEqual([]);
        expect(pair.clock.timers).toBe(0);
      },
    );
    await fc.assert(property, { seed, numRuns: 500 });
  });
});
