import { describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { ResourceError } from '../../src/store/resources.ts';
import { startController } from '../../src/runtime/controller.ts';
import type { Outcome } from '../../src/runtime/queue/queue.ts';
import { controllerMetrics, queueMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { named } from '../support/declared.ts';
import { endpoint, meshEndpoints } from '../support/objects.ts';
import { DONE, FOREVER, refOfWeb, running, tailnet, web } from '../support/runtime/running-controller.ts';
import { Runtime } from '../support/runtime/runtime.ts';
import { parseExposition, valueOf } from '../support/telemetry/exposition.ts';

describe('a controller', () => {
  it('reconciles every object, but not before the source is synced', async () => {
    const seen: string[] = [];
    const runtime = new Runtime([web('a'), web('b')]);
    runtime.start({
      kind: 'MeshEndpoints',
      reconcile: ref => {
        seen.push(ref.name);
        return Promise.resolve(DONE);
      },
    });
    await runtime.clock.advance(60_000);
    expect(seen).toEqual([]);
    await runtime.memory.start();
    await runtime.clock.settle();
    expect(seen).toEqual(['a', 'b']);
  });

  it('reconciles objects that existed before it started', async () => {
    const seen: string[] = [];
    const runtime = new Runtime([web('a')]);
    await runtime.memory.start();
    runtime.start({
      kind: 'MeshEndpoints',
      reconcile: ref => {
        seen.push(ref.name);
        return Promise.resolve(DONE);
      },
    });
    await runtime.clock.settle();
    expect(seen).toEqual(['a']);
  });

  it('reconciles what is added, changed and removed, and nothing else', async () => {
    const seen: string[] = [];
    const { clock, memory } = await running(ref => {
      seen.push(`${ref.name} ${memory.read.get(refOfWeb(ref.name))?.spec.endpoints?.[0]?.port ?? 'gone'}`);
      return Promise.resolve(DONE);
    }, []);
    await memory.author.put(web('a'));
    await clock.settle();
    await memory.author.put(web('a', 9090));
    await clock.settle();
    await memory.author.put(web('a', 9090));
    await memory.author.put(tailnet('t', 'example.ts.net'));
    await clock.settle();
    await memory.author.remove(refOfWeb('a'));
    await clock.advance(60_000);
    expect(seen).toEqual(['a 8080', 'a 9090', 'a gone']);
  });

  it('writes the status of all objects beside a namespace whose status writes never end', async () => {
    const names = Array.from({ length: 20 }, (_, at) => [`noisy/web-${at}`, `quiet/web-${at}`]).flat();
    const spec = { endpoints: [endpoint({})] };
    const runtime = new Runtime(names.map(name => named(meshEndpoints(spec), name)));
    const { read, write } = runtime.memory;
    runtime.start({
      kind: 'MeshEndpoints',
      reconcile: async ref => {
        const object = read.get(ref);
        if (ref.namespace === 'noisy') await FOREVER;
        if (object) await write.replaceStatus(object, { observedGeneration: 1 });
        return DONE;
      },
    });
    await runtime.memory.start();
    await runtime.clock.settle();
    const written = read.list('MeshEndpoints').filter(({ status }) => status !== undefined);
    expect(written.map(({ metadata: { namespace } }) => namespace)).toEqual(Array(20).fill('quiet'));
  });

  it('reconciles what it enqueues for reasons of its own, until it has stopped', async () => {
    const seen: string[] = [];
    const listeners = new Set<(name: string) => void>();
    const runtime = new Runtime([]);
    const controller = runtime.start({
      kind: 'MeshTailnet',
      subscribe: enqueue => {
        const listener = (name: string) => enqueue({ kind: 'MeshTailnet', namespace: '', name });
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      reconcile: ({ name }) => {
        seen.push(name);
        return Promise.resolve(DONE);
      },
    });
    await runtime.memory.start();
    for (const listener of listeners) listener('one');
    await runtime.clock.settle();
    expect(seen).toEqual(['one']);
    controller.stop();
    expect(listeners.size).toBe(0);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no'))],
    ['could not write', () => Promise.reject(new ResourceError('Unavailable', 'no'))],
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- that is what is tested
    ['rejects with a string', () => Promise.reject('no')],
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- that is what is tested
    ['rejects with undefined', () => Promise.reject()],
    ['resolves with undefined', () => Promise.resolve()],
    ['returns undefined', () => undefined],
    ['resolves with an unknown outcome', () => Promise.resolve({ requeue: 'never' })],
    ['requeues after NaN', () => Promise.resolve({ requeue: 'after', ms: Number.NaN })],
    ['requeues after Infinity', () => Promise.resolve({ requeue: 'after', ms: Infinity })],
  ])('that %s is logged, counted and retried with backoff', async (_how, reconcile) => {
    const times: number[] = [];
    const { runtime, clock } = await running((_ref, _context, { clock }) => {
      times.push(clock.now());
      return reconcile();
    });
    await clock.advance(40);
    expect(times).toEqual([0, 5, 15, 35]);
    expect(await runtime.metric('controller_runtime_reconcile_errors_total')).toBe(4);
    expect(await runtime.metric('controller_runtime_reconcile_total', { result: 'error' })).toBe(4);
    expect(await runtime.metric('workqueue_retries_total')).toBe(4);
    const line = {
      level: 'error',
      msg: 'reconcile failed',
      controller: 'test',
      object: 'MeshEndpoints/default/a',
    };
    expect(runtime.lines).toEqual(Array(4).fill(expect.objectContaining(line)));
  });

  it.each<[Outcome, string, readonly number[]]>([
    [{ requeue: 'on-change' }, 'success', [0]],
    [{ requeue: 'after', ms: 10 }, 'requeue_after', [0, 10, 20, 30, 40]],
    [{ requeue: 'after', ms: -5 }, 'requeue_after', [0, 0, 0, 0, 0, 0]],
    [{ requeue: 'with-backoff' }, 'requeue', [0, 5, 15, 35]],
    [{ requeue: 'once-available' }, 'requeue', [0, 5, 15, 35]],
  ])('that returns %o counts it as %s', async (outcome, result, expected) => {
    const times: number[] = [];
    const { runtime, clock } = await running((_ref, _context, { clock }) => {
      times.push(clock.now());
      return times.length > 5 ? FOREVER : Promise.resolve(outcome);
    });
    await clock.advance(40);
    expect(times).toEqual(expected);
    expect(await runtime.metric('controller_runtime_reconcile_total', { result })).toBe(
      Math.min(5, times.length),
    );
    expect(await runtime.metric('controller_runtime_reconcile_errors_total')).toBe(0);
    expect(runtime.lines).toEqual([]);
  });

  it('counts no error if the object was deleted before the write, and retries', async () => {
    const times: number[] = [];
    const { runtime, clock } = await running((_ref, _context, { clock }) => {
      times.push(clock.now());
      return times.length > 1 ? Promise.resolve(DONE) : Promise.reject(new ResourceError('Gone', 'deleted'));
    });
    await clock.advance(100);
    expect(times).toEqual([0, 5]);
    expect(await runtime.metric('controller_runtime_reconcile_errors_total')).toBe(0);
    expect(runtime.lines).toEqual([]);
  });
});

describe('what a controller remembers', () => {
  it('is kept of each object between reconciles, and forgotten with it, also while its name is reconciled', async () => {
    const runtime = new Runtime([web('a'), web('b')]);
    const seen: string[] = [];
    let isAway = false;
    runtime.start({
      kind: 'MeshEndpoints',
      keys: () => [refOfWeb('a')],
      memory: () => ({ runs: 0 }),
      reconcile: ({ name }, read, { memory }) => {
        const exists = read.get(refOfWeb(name)) !== undefined;
        seen.push(`${name} ${exists ? '' : 'deleted '}${++memory.runs}`);
        return isAway ? Promise.reject(new Error('away')) : Promise.resolve(DONE);
      },
    });
    await runtime.memory.start();
    await runtime.clock.settle();
    for (const change of [
      () => runtime.memory.author.put(web('a', 81)),
      () => runtime.memory.author.remove(refOfWeb('a')),
      () => runtime.memory.author.put(web('a')),
    ]) {
      await change();
      await runtime.clock.settle();
    }
    expect(seen).toEqual(['a 1', 'b 1', 'a 2', 'a deleted 3', 'a 1']);
    isAway = true;
    await runtime.memory.author.remove(refOfWeb('b'));
    await runtime.clock.settle();
    isAway = false;
    await runtime.clock.advance(5);
    expect(seen.slice(5)).toEqual(['b deleted 2', 'b deleted 3']);
  });
});

describe('a controller with a minimum interval', () => {
  it('reconciles an object once within it, and retries one that failed before', async () => {
    const runtime = new Runtime([web('a')]);
    const times: number[] = [];
    const reconcile = () => {
      times.push(runtime.clock.now());
      return times.length === 3 ? Promise.reject(new Error('no')) : Promise.resolve(DONE);
    };
    runtime.start({ kind: 'MeshEndpoints', minIntervalMs: 1000, reconcile });
    await runtime.memory.start();
    await runtime.clock.settle();
    for (const port of [81, 82, 83]) {
      await runtime.memory.author.put(web('a', port));
      await runtime.clock.advance(400);
    }
    await runtime.memory.author.put(web('a', 84));
    await runtime.clock.advance(5000);
    expect(times).toEqual([0, 1000, 2000, 2005]);
  });
});

describe('the metrics of a controller', () => {
  it('exist with 0 from the start', async () => {
    const runtime = new Runtime([web('a')]);
    runtime.start({ kind: 'MeshEndpoints', reconcile: () => FOREVER }, { concurrency: 7 });
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) {
      expect(await runtime.metric('controller_runtime_reconcile_total', { result })).toBe(0);
    }
    expect(await runtime.metric('controller_runtime_reconcile_errors_total')).toBe(0);
    expect(await runtime.metric('controller_runtime_reconcile_time_seconds_count')).toBe(0);
    expect(await runtime.metric('controller_runtime_max_concurrent_reconciles')).toBe(7);
  });

  it('include the time that reconciles took', async () => {
    const { runtime, clock } = await running(
      (_ref, _context, { clock }) => new Promise(resolve => clock.after(2000, () => resolve(DONE))),
    );
    await clock.advance(5000);
    expect(await runtime.metric('controller_runtime_reconcile_time_seconds_count')).toBe(1);
    expect(await runtime.metric('controller_runtime_reconcile_time_seconds_sum')).toBe(2);
  });

  it('start at zero, also if its name was not known before', async () => {
    const registry = createRegistry({ metrics: { ...controllerMetrics, ...queueMetrics }, version: 'test' });
    const { telemetry, tracking, clock } = new Runtime();
    startController(
      { name: 'late', kind: 'MeshEndpoints', reads: [], reconcile: () => FOREVER },
      { tracking, clock, telemetry: { ...telemetry, metrics: registry } },
      { concurrency: 1, syncPeriodMs: 30_000 },
    );
    const families = parseExposition(await registry.text());
    const valueFor = (name: string, labels: Readonly<Record<string, string>>) =>
      valueOf(families, name, labels);
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) {
      expect(valueFor('controller_runtime_reconcile_total', { controller: 'late', result })).toBe(0);
    }
    expect(valueFor('controller_runtime_reconcile_errors_total', { controller: 'late' })).toBe(0);
    expect(valueFor('workqueue_adds_total', { name: 'late' })).toBe(0);
    expect(valueFor('workqueue_retries_total', { name: 'late' })).toBe(0);
  });

  it('show what waits, runs and is delayed', async () => {
    const objects = ['retried', 'runs', 'waits'].map(name => web(name));
    const runtime = new Runtime(objects);
    const reconcile = ({ name }: Ref) => (name === 'retried' ? Promise.reject(new Error('no')) : FOREVER);
    runtime.start({ kind: 'MeshEndpoints', reconcile }, { concurrency: 1 });
    await runtime.memory.start();
    await runtime.clock.settle();
    await runtime.clock.advance(1);
    expect(await runtime.metric('workqueue_depth')).toBe(1);
    expect(await runtime.metric('workqueue_adds_total')).toBe(3);
    expect(await runtime.metric('workqueue_queue_duration_seconds_count')).toBe(2);
    expect(await runtime.metric('workqueue_work_duration_seconds_count')).toBe(1);
    expect(await runtime.metric('workqueue_unfinished_work_seconds')).toBe(0.001);
    expect(runtime.activities()).toEqual([
      'MeshEndpoints/default/runs running 1',
      '1 keys background',
      '1 keys delayed',
    ]);
  });
});
