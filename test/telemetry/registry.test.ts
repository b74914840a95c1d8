import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import {
  controllerMetrics,
  leaderMetrics,
  processMetrics,
  queueMetrics,
} from '../../src/telemetry/metrics.ts';
import type { MetricDeclaration, MetricDeclarations } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { parseExposition, valueOf } from '../support/telemetry/exposition.ts';

const RESULTS = ['success', 'error', 'requeue', 'requeue_after'];
const all: MetricDeclarations = { ...controllerMetrics, ...queueMetrics, ...processMetrics };
const everything: readonly MetricDeclaration[] = Object.values(all);

function operator() {
  return createRegistry({
    metrics: { ...controllerMetrics, ...queueMetrics },
    version: '1.2.3',
    known: { controller: ['mesh-endpoints', 'mesh-tailnet'], name: ['mesh-endpoints'] },
  });
}

async function read(registry: { text(): Promise<string> }) {
  return parseExposition(await registry.text());
}

describe('the metrics of the contract', () => {
  it.each([
    ['controller_runtime_reconcile_total', 'counter', ['controller', 'result']],
    ['controller_runtime_reconcile_time_seconds', 'histogram', ['controller']],
    ['controller_runtime_reconcile_errors_total', 'counter', ['controller']],
    ['workqueue_depth', 'gauge', ['name']],
    ['workqueue_adds_total', 'counter', ['name']],
    ['workqueue_retries_total', 'counter', ['name']],
    ['workqueue_longest_running_processor_seconds', 'gauge', ['name']],
    ['workqueue_unfinished_work_seconds', 'gauge', ['name']],
    ['mesh_gateway_build_info', 'gauge', ['version']],
  ])('%s is a %s by %j', (name, type, labels) => {
    const declared = everything.find(one => one.name === name);
    expect({ ...declared, labels: Object.keys(declared?.labels ?? {}) }).toMatchObject({ type, labels });
  });

  it.each(RESULTS)('count reconciles that ended as %s, from zero', async result => {
    const registry = operator();
    const labels = { controller: 'mesh-tailnet', result };
    const name = 'controller_runtime_reconcile_total';
    expect(valueOf(await read(registry), name, labels)).toBe(0);
    registry.record.reconciles(labels as { controller: string; result: 'success' });
    expect(valueOf(await read(registry), name, labels)).toBe(1);
  });
});

describe('declarations', () => {
  it.each(everything)('of $name follow the advice of Prometheus', ({ name, type, help }) => {
    expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
    expect(help).not.toBe('');
  });

  it.each(everything)('of $name have increasing buckets', (declared: MetricDeclaration) => {
    const buckets = declared.type === 'histogram' ? declared.buckets : [1];
    expect(buckets.length).toBeGreaterThan(0);
    expect([...buckets].sort((a, b) => a - b)).toEqual([...new Set(buckets)]);
  });

  it('have names of their own', () => {
    expect(new Set(everything.map(({ name }) => name)).size).toBe(everything.length);
  });
});

describe('an exposition', () => {
  it('has every series that can be known, at zero', async () => {
    const families = await read(operator());
    for (const { name } of everything.filter(one => one !== processMetrics.buildInfo)) {
      const values = families.get(name)?.series.map(({ value }) => value) ?? [];
      expect([name, ...new Set(values)]).toEqual([name, 0]);
    }
    expect(families.get('controller_runtime_reconcile_total')?.series).toHaveLength(2 * RESULTS.length);
  });

  it('has metrics of the build, the process and the event loop', async () => {
    const families = await read(operator());
    expect(valueOf(families, 'mesh_gateway_build_info', { version: '1.2.3' })).toBe(1);
    for (const name of ['process_resident_memory_bytes', 'process_cpu_seconds_total', 'process_open_fds']) {
      expect(valueOf(families, name)).toBeGreaterThan(0);
    }
    expect([...families.keys()]).toContain('nodejs_eventloop_lag_p99_seconds');
    expect([...families.keys()]).toContain('nodejs_heap_size_used_bytes');
  });

  it('has the longest piece of work that has held up the event loop since it was read last', async () => {
    const registry = operator();
    await vi.waitFor(async () => {
      const endMs = performance.now() + 60;
      while (performance.now() < endMs);
      // The delay is measured by a timer, which is due before this one.
      await new Promise(resolve => setTimeout(resolve));
      expect(valueOf(await read(registry), 'nodejs_eventloop_lag_max_seconds')).toBeGreaterThan(0.05);
    });
  });

  it('counts into the buckets of a histogram', async () => {
    const registry = operator();
    for (const seconds of [0.003, 0.2, 0.21, 70]) {
      registry.record.reconcileSeconds({ controller: 'mesh-endpoints' }, seconds);
    }
    const families = await read(registry);
    const name = 'controller_runtime_reconcile_time_seconds';
    const upTo = (le: string) => valueOf(families, `${name}_bucket`, { controller: 'mesh-endpoints', le });
    expect([upTo('0.005'), upTo('0.2'), upTo('0.25'), upTo('60'), upTo('+Inf')]).toEqual([1, 2, 3, 3, 4]);
    expect(valueOf(families, `${name}_sum`, { controller: 'mesh-endpoints' })).toBeCloseTo(70.413);
    expect(valueOf(families, `${name}_count`, { controller: 'mesh-endpoints' })).toBe(4);
  });

  it('has its content type', () => {
    expect(operator().contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  it('does not affect another registry', async () => {
    operator().record.queueAdds({ name: 'mesh-endpoints' }, 5);
    expect(valueOf(await read(operator()), 'workqueue_adds_total', { name: 'mesh-endpoints' })).toBe(0);
  });

  it('survives names that would break lines', async () => {
    const registry = operator();
    registry.record.queueAdds({ name: 'a"b\\c\nd,e' });
    expect(valueOf(await read(registry), 'workqueue_adds_total', { name: 'a"b\\c d e' })).toBe(1);
  });

  const promtool = ['/usr/bin/promtool', '/usr/local/bin/promtool'].find(path => existsSync(path));
  // In CI a missing tool is a failure.
  const mayLack = process.env['CI'] === undefined;
  it.skipIf(promtool === undefined && mayLack)('is accepted by promtool, where it is installed', async () => {
    const text = await operator().text();
    const run = () => execFileSync(promtool ?? '', ['check', 'metrics'], { input: text });
    expect(run).not.toThrow();
  });
});

describe('gauges', () => {
  const ofQueue = (value: number) => () => [{ labels: { name: 'mesh-endpoints' }, value }];
  const depth = async (registry: { text(): Promise<string> }) =>
    valueOf(await read(registry), 'workqueue_depth', { name: 'mesh-endpoints' });

  it('are read at each scrape', async () => {
    const registry = operator();
    let waiting = 3;
    registry.readGauge('queueDepth', () => ofQueue(waiting)());
    expect(await depth(registry)).toBe(3);
    waiting = 1;
    expect(await depth(registry)).toBe(1);
  });

  it('add up where several functions read them, until one ends', async () => {
    const registry = operator();
    const end = registry.readGauge('queueDepth', ofQueue(3));
    registry.readGauge('queueDepth', ofQueue(4));
    expect(await depth(registry)).toBe(7);
    end();
    expect(await depth(registry)).toBe(4);
  });

  it('drop series that are not returned any more', async () => {
    const registry = operator();
    let name = 'before';
    registry.readGauge('queueDepth', () => [{ labels: { name }, value: 1 }]);
    await registry.text();
    name = 'after';
    const families = await read(registry);
    expect(valueOf(families, 'workqueue_depth', { name: 'before' })).toBeUndefined();
    expect(valueOf(families, 'workqueue_depth', { name: 'after' })).toBe(1);
  });

  it('that cannot be read are counted, and all others are exposed', async () => {
    const registry = operator();
    registry.readGauge('queueDepth', () => {
      throw new Error('broken');
    });
    registry.readGauge('queueDepth', ofQueue(2));
    await registry.text();
    const families = await read(registry);
    expect(valueOf(families, 'workqueue_depth', { name: 'mesh-endpoints' })).toBe(2);
    expect(
      valueOf(families, 'mesh_gateway_failed_readings_total', { metric: 'workqueue_depth' }),
    ).toBeGreaterThan(0);
  });
});

describe('a recorder', () => {
  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1])('leaves out a count of %s', async by => {
    const registry = operator();
    registry.record.queueAdds({ name: 'mesh-endpoints' }, by);
    expect(valueOf(await read(registry), 'workqueue_adds_total', { name: 'mesh-endpoints' })).toBe(0);
  });

  it('counts 0 for a clock that went back', async () => {
    const registry = operator();
    registry.record.reconcileSeconds({ controller: 'mesh-endpoints' }, -5);
    registry.record.reconcileSeconds({ controller: 'mesh-endpoints' }, Number.NaN);
    const families = await read(registry);
    const name = 'controller_runtime_reconcile_time_seconds';
    expect(valueOf(families, `${name}_sum`, { controller: 'mesh-endpoints' })).toBe(0);
    expect(valueOf(families, `${name}_count`, { controller: 'mesh-endpoints' })).toBe(1);
  });

  it('has only the metrics, labels and values that are declared', () => {
    const registry = operator();
    const { record } = registry;
    const wrong = [
      // @ts-expect-error a label that is not declared
      () => record.queueAdds({ nam: 'a' }),
      // @ts-expect-error a label too many
      () => record.queueAdds({ name: 'a', result: 'success' }),
      // @ts-expect-error a value that is not declared
      () => record.reconciles({ controller: 'a', result: 'fine' }),
      // @ts-expect-error a label is missing
      () => record.reconciles({ controller: 'a' }),
      // @ts-expect-error what was measured is missing
      () => record.reconcileSeconds({ controller: 'a' }),
      // @ts-expect-error a gauge is read, not recorded
      (): unknown => record.queueDepth,
      // @ts-expect-error a counter is recorded, not read
      () => registry.readGauge('queueAdds', () => []),
      // @ts-expect-error no label has this name
      () => createRegistry({ metrics: queueMetrics, version: '1', known: { controller: ['a'] } }),
    ];
    expect(wrong.every(call => typeof call === 'function')).toBe(true);
  });
});

describe('the number of series', () => {
  const label = (index: number) => ({ controller: `c${index}` });

  it('is bounded: excess series are counted as other', async () => {
    const registry = createRegistry({ metrics: controllerMetrics, version: '1', mostSeries: 10 });
    for (let index = 0; index < 1000; index++) registry.record.reconcileErrors(label(index));
    for (let index = 0; index < 1000; index++) registry.record.reconcileSeconds(label(index), 1);
    for (let index = 0; index < 1000; index++) {
      registry.record.reconciles({ ...label(index), result: index % 2 ? 'error' : 'success' });
    }
    const families = await read(registry);
    const errors = 'controller_runtime_reconcile_errors_total';
    expect(families.get(errors)?.series).toHaveLength(11);
    expect(valueOf(families, errors, { controller: 'other' })).toBe(990);
    expect(valueOf(families, errors, label(3))).toBe(1);
    const total = 'controller_runtime_reconcile_total';
    expect(families.get(total)?.series).toHaveLength(12);
    expect(valueOf(families, total, { controller: 'other', result: 'error' })).toBe(495);
    const count = 'controller_runtime_reconcile_time_seconds_count';
    expect(valueOf(families, count, { controller: 'other' })).toBe(990);
  });

  it('is bounded for gauges as well', async () => {
    const registry = createRegistry({ metrics: queueMetrics, version: '1', mostSeries: 10 });
    registry.readGauge('queueDepth', () =>
      Array.from({ length: 100 }, (_, index) => ({ labels: { name: `q${index}` }, value: 1 })),
    );
    const families = await read(registry);
    expect(valueOf(families, 'workqueue_depth', { name: 'other' })).toBe(90);
    expect(families.get('workqueue_depth')?.series).toHaveLength(11);
  });

  it('does not grow by values that a closed list lacks', async () => {
    const registry = operator();
    const record = registry.record.reconciles as (labels: Record<string, unknown>) => void;
    for (const result of ['fine', 3, undefined, {}]) record({ controller: 'mesh-endpoints', result });
    const families = await read(registry);
    const labels = { controller: 'mesh-endpoints', result: 'other' };
    expect(valueOf(families, 'controller_runtime_reconcile_total', labels)).toBe(4);
  });

  it('has bounded label values', async () => {
    const registry = operator();
    registry.record.queueAdds({ name: 'x'.repeat(10_000) });
    expect(valueOf(await read(registry), 'workqueue_adds_total', { name: 'x'.repeat(128) })).toBe(1);
  });
});

it('a metric without known series has the recorded series, and no others', async () => {
  const metrics = createRegistry({
    metrics: { ...queueMetrics, ...leaderMetrics },
    version: '1.2.3',
    known: { name: ['a-controller'] },
    unknown: ['leads'],
  });
  metrics.readGauge('leads', () => [{ labels: { name: 'a-lease' }, value: 1 }]);
  const families = parseExposition(await metrics.text());
  const namesOf = (metric: string) => families.get(metric)?.series.map(({ labels }) => labels['name']);
  expect(namesOf('leader_election_master_status')).toEqual(['a-lease']);
  expect(namesOf('workqueue_adds_total')).toEqual(['a-controller']);
});
