import { describe, expect, it } from 'vitest';
import type { RunContext } from '../../src/runtime/runs.ts';
import { DONE, FOREVER, running, web } from '../support/runtime/running-controller.ts';
import { Runtime } from '../support/runtime/runtime.ts';

const LIMITS = { graceMs: 20_000, abortMs: 1000 };

describe('a run that takes long', () => {
  it('is logged at doubling intervals, shown in metrics, and aborted in the end', async () => {
    let signal: AbortSignal | undefined;
    const { runtime, clock } = await running((_ref, context) => {
      signal = context.signal;
      return FOREVER;
    });
    await clock.advance(29_000);
    expect(runtime.lines).toEqual([]);
    await clock.advance(270_000);
    const seconds = runtime.lines.map(line => [line.msg, line['object'], line['seconds']]);
    expect(seconds).toEqual(
      [30, 60, 120, 240].map(n => ['reconcile takes too long', 'MeshEndpoints/default/a', n]),
    );
    expect(await runtime.metric('workqueue_longest_running_processor_seconds')).toBe(299);
    expect(await runtime.metric('controller_runtime_active_workers')).toBe(1);
    expect(runtime.activities()).toEqual(['MeshEndpoints/default/a running 299000']);
    expect(signal?.aborted).toBe(false);
    await clock.advance(2000);
    expect(signal?.reason).toEqual(new Error('the run took longer than 300000 ms'));
  });

  it('is retried if it ends when aborted', async () => {
    const times: number[] = [];
    const { clock } = await running((_ref, { signal }, { clock }) => {
      times.push(clock.now());
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    });
    await clock.advance(301_000);
    expect(times).toEqual([0, 300_005]);
  });

  it('does not block other objects, and its own never runs twice at once', async () => {
    const seen: string[] = [];
    const { clock, memory } = await running(ref => {
      seen.push(ref.name);
      return ref.name === 'a' ? FOREVER : Promise.resolve(DONE);
    });
    await memory.author.put(web('a', 9090));
    await memory.author.put(web('b'));
    await clock.advance(1_000_000);
    expect(seen).toEqual(['a', 'b']);
  });

  it('releases its slot if it continues after it was aborted, which is logged and counted once', async () => {
    const seen: string[] = [];
    const ends: (() => void)[] = [];
    const objects = ['a', 'b', 'c', 'd'].map(name => web(name));
    const runtime = new Runtime(objects);
    runtime.start(
      {
        kind: 'MeshEndpoints',
        reconcile: ({ name }) => {
          seen.push(name);
          const isHung = seen.length < 4;
          return isHung ? new Promise(resolve => ends.push(() => resolve(DONE))) : Promise.resolve(DONE);
        },
      },
      { concurrency: 2 },
    );
    const { clock, memory } = runtime;
    await memory.start();
    await clock.advance(329_000);
    expect(seen).toEqual(['a', 'b']);
    await clock.advance(2000);
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    const lines = runtime.lines.filter(({ msg }) => msg === 'reconcile did not stop after it was aborted');
    expect(lines.map(line => [line.level, line['object'], line['seconds']])).toEqual([
      ['error', 'MeshEndpoints/default/a', 330],
      ['error', 'MeshEndpoints/default/b', 330],
    ]);
    expect(await runtime.metric('controller_runtime_reconcile_errors_total')).toBe(2);
    expect(await runtime.metric('controller_runtime_active_workers')).toBe(3);
    ends.slice(0, 2).forEach(end => end());
    await clock.settle();
    expect(await runtime.metric('controller_runtime_reconcile_total', { result: 'error' })).toBe(2);
    expect(await runtime.metric('controller_runtime_reconcile_total', { result: 'success' })).toBe(1);
    expect(await runtime.metric('controller_runtime_active_workers')).toBe(1);
  });

  it('stalls no controller, however many of them there are, and is never joined by another of its key', async () => {
    const hung = new Set<string>();
    const seen: string[] = [];
    const objects = Array.from({ length: 12 }, (_, index) => web(`hung-${index}`));
    const runtime = new Runtime(objects);
    const reconcile = ({ name }: { readonly name: string }) => {
      seen.push(name);
      if (!name.startsWith('hung')) return Promise.resolve(DONE);
      hung.add(name);
      return FOREVER;
    };
    runtime.start({ kind: 'MeshEndpoints', reconcile }, { concurrency: 1, syncPeriodMs: 30_000 });
    const { clock, memory } = runtime;
    await memory.start();
    await clock.advance(1_000_000);
    await memory.author.put(web('hung-0', 9090));
    await memory.author.put(web('good'));
    await clock.advance(4_000_000);
    expect(hung.size).toBe(12);
    expect(seen.filter(name => name.startsWith('hung'))).toHaveLength(12);
    expect(seen).toContain('good');
  });

  it('is reconciled again for changes during the run, when it finally ends', async () => {
    const ends: (() => void)[] = [];
    const { clock, memory } = await running(() => new Promise(resolve => ends.push(() => resolve(DONE))));
    await clock.advance(400_000);
    await memory.author.put(web('a', 9090));
    await clock.advance(1000);
    expect(ends).toHaveLength(1);
    ends[0]?.();
    await clock.advance(1000);
    expect(ends).toHaveLength(2);
  });

  it('has an aborted signal also if it first reads it after the abort', async () => {
    let given: RunContext | undefined;
    const { clock } = await running((_ref, context) => {
      given = context;
      return FOREVER;
    });
    await clock.advance(400_000);
    expect(given?.signal.aborted).toBe(true);
  });
});

describe('a controller that is drained', () => {
  it('waits for the runs under way and begins no others', async () => {
    const ends: (() => void)[] = [];
    const { clock, memory, controller } = await running(
      () => new Promise(resolve => ends.push(() => resolve(DONE))),
    );
    let left: readonly string[] | undefined;
    const drained = controller.drain(LIMITS).then(keys => (left = keys));
    await memory.author.put(web('a', 9090));
    await memory.author.put(web('b'));
    await clock.advance(10_000);
    expect(left).toBeUndefined();
    ends.forEach(end => end());
    await drained;
    await clock.advance(1_000_000);
    expect(left).toEqual([]);
    expect(ends.length).toBe(1);
    expect(clock.timers).toBe(0);
  });

  it('aborts the runs that have not ended at the deadline', async () => {
    let abortedAt: number | undefined;
    const { clock, controller } = await running(
      (_ref, { signal }, { clock }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            abortedAt = clock.now();
            reject(signal.reason as Error);
          }),
        ),
    );
    const drained = controller.drain(LIMITS);
    await clock.advance(20_000);
    expect(await drained).toEqual([]);
    expect(abortedAt).toBe(20_000);
    expect(clock.timers).toBe(0);
  });

  it.each([
    ['do not even obey', 0],
    ['were given up before', 400_000],
  ])('names the objects of the runs that %s', async (_what, ageMs) => {
    const { runtime, clock, controller } = await running(() => FOREVER);
    await clock.advance(ageMs);
    const drained = controller.drain(LIMITS);
    await clock.advance(21_000);
    expect(await drained).toEqual(['MeshEndpoints/default/a']);
    expect(runtime.activities()).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('before the source is synced never starts', async () => {
    const seen: string[] = [];
    const runtime = new Runtime([web('a')]);
    const controller = runtime.start({
      kind: 'MeshEndpoints',
      reconcile: ref => {
        seen.push(ref.name);
        return Promise.resolve(DONE);
      },
    });
    await controller.drain(LIMITS);
    await runtime.memory.start();
    await runtime.clock.advance(1_000_000);
    expect(seen).toEqual([]);
    expect(runtime.clock.timers).toBe(0);
  });
});
