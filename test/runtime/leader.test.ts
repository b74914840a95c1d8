import { describe, expect, it } from 'vitest';
import type { RunningController } from '../../src/runtime/controller.ts';
import { countingSleep } from '../../src/runtime/clock.ts';
import { leadControllers } from '../../src/runtime/controller.ts';
import { named } from '../support/declared.ts';
import { meshTailnet } from '../support/objects.ts';
import { Runtime } from '../support/runtime/runtime.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

describe('the controllers of a leader', () => {
  const limits = { graceMs: 20_000, abortMs: 5000 };

  function start(): { runtime: Runtime; controller: RunningController; ends: string[] } {
    const runtime = new Runtime([named(meshTailnet(), 'example')]);
    const ends: string[] = [];
    const controller = runtime.start({
      kind: 'MeshTailnet',
      reconcile: (_ref, _read, { signal }) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => {
            ends.push(`aborted at ${runtime.clock.now()}`);
            reject(new Error('aborted'));
          });
          runtime.clock.after(10_000, () => {
            ends.push(`ended at ${runtime.clock.now()}`);
            resolve({ requeue: 'on-change' });
          });
        }),
    });
    return { runtime, controller, ends };
  }

  it('have time to end their runs where the process stops', async () => {
    const { runtime, controller, ends } = start();
    await runtime.memory.start();
    await runtime.clock.advance(1000);
    const ended = leadControllers([controller], limits).end('stopping');
    await runtime.clock.advance(20_000);
    await ended;
    expect(ends).toEqual(['ended at 10000']);
  });

  it('have none where leadership is lost, be it while they end at leisure', async () => {
    const { runtime, controller, ends } = start();
    await runtime.memory.start();
    await runtime.clock.advance(1000);
    const leading = leadControllers([controller], limits);
    const both = Promise.all([leading.end('stopping'), leading.end('lost')]);
    await runtime.clock.advance(1);
    await both;
    expect(ends).toEqual(['aborted at 1000']);
  });

  it('report runs that do not end', async () => {
    const runtime = new Runtime([named(meshTailnet(), 'example')]);
    const controller = runtime.start({ kind: 'MeshTailnet', reconcile: () => new Promise(() => undefined) });
    await runtime.memory.start();
    await runtime.clock.advance(1000);
    const ended = expect(leadControllers([controller], limits).end('lost')).rejects.toThrow(
      'MeshTailnet//example',
    );
    await runtime.clock.advance(10_000);
    await ended;
  });
});

describe('a clock that counts sleep', () => {
  it('counts the time in which the machine was suspended, and is monotonic', async () => {
    const clock = new VirtualClock();
    let [bootMs, sleptMs] = [5000, 0];
    const counting = countingSleep(clock, () => bootMs + clock.now() + sleptMs);
    expect(counting.now()).toBe(0);
    await clock.advance(1000);
    expect(counting.now()).toBe(1000);
    sleptMs = 3_600_000;
    expect(counting.now()).toBe(3_601_000);
    bootMs = 0;
    expect(counting.now()).toBe(3_601_000);
    await clock.advance(1000);
    expect(counting.now()).toBe(3_602_000);
  });

  it('wakes what waits as the clock does that it is made from', async () => {
    const clock = new VirtualClock();
    const counting = countingSleep(clock, () => clock.now());
    const woken: string[] = [];
    counting.after(1000, () => woken.push('after'));
    counting.after(1000, () => woken.push('never'))();
    counting.soon(() => woken.push('soon'));
    await clock.advance(1000);
    expect(woken).toEqual(['soon', 'after']);
  });
});
