import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure } from '../figures.ts';
import { addressesOf } from './objects.ts';
import type { CheckedObject } from './objects.ts';
import type { Installation } from './operator.ts';

const OBJECTS = 100;

/** Endpoints that are checked at an interval, and for how long they are measured. */
export type Load = {
  readonly endpoints: number;
  readonly intervalSeconds: number;
  readonly seconds: number;
};

export function objectsOf({ endpoints, intervalSeconds }: Load): readonly CheckedObject[] {
  const healthCheck = { interval: `${intervalSeconds}s`, timeout: '10s' };
  return Array.from({ length: OBJECTS }, (_, index) => ({
    name: `every-${intervalSeconds}s-${index}`,
    addresses: addressesOf(index, endpoints / OBJECTS),
    healthCheck,
  }));
}

const FIRST_DECISIONS_TIMEOUT_MS = 180_000;

const settleMs = ({ intervalSeconds }: Load) => intervalSeconds * 1000 + 5000;

/** How long a load is measured, and waits before that. */
export function loadMs(load: Load): number {
  return settleMs(load) + load.seconds * 1000;
}

/** Waits until all endpoints are healthy; fails if they do not become so in time. */
export async function awaitHealthy({ operator }: Installation, endpoints: number): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const metrics = await operator.metrics();
    const healthy = metrics.get('mesh_gateway_endpoints{tailnet="example",status="healthy"}') ?? 0;
    const tookMs = performance.now() - startedAt;
    if (healthy === endpoints) return tookMs;
    if (tookMs > FIRST_DECISIONS_TIMEOUT_MS) throw new Error(`only ${healthy} of ${endpoints} are healthy`);
    await sleep(250);
  }
}

/** Measures the operator while it checks; fails if it checked less than it should. */
export async function loadFigures(installation: Installation, load: Load): Promise<readonly Figure[]> {
  const { operator, requestProxy } = installation;
  // Until each endpoint is checked by its interval, with all that the first decisions needed forgotten.
  await sleep(settleMs(load));
  const before = { ...(await sample(installation)), cpuMs: operator.cpuMs(), at: performance.now() };
  await sleep(load.seconds * 1000);
  const [cpuMs, tookMs] = [operator.cpuMs() - before.cpuMs, performance.now() - before.at];
  const after = await sample(installation);
  const rate = (1000 * (after.checks - before.checks)) / tookMs;
  const wanted = load.endpoints / load.intervalSeconds;
  if (rate < 0.97 * wanted)
    throw new Error(`only ${rate.toFixed(0)} of ${wanted.toFixed(0)} checks a second`);
  const { checks } = await requestProxy({});
  if (after.succeeded > checks) throw new Error(`${after.succeeded} successes of ${checks} checks`);
  const lag = quantile(0.99, before.lags, after.lags);
  const name = `${load.endpoints} endpoints each ${load.intervalSeconds} s`;
  const { now, most } = operator.megabytes();
  return [
    { name: `${name}: checks a second`, value: rate, unit: '/s' },
    { name: `${name}: start lag, p99`, value: lag * 1000, unit: 'ms', aim: 50 },
    { name: `${name}: CPU of the operator`, value: cpuMs / tookMs, unit: 'cores', aim: 0.5 },
    { name: `${name}: memory of the operator`, value: now, unit: 'MB', aim: 200 },
    { name: `${name}: the most that it had so far`, value: most, unit: 'MB' },
  ];
}

type Sample = {
  readonly checks: number;
  readonly succeeded: number;
  /** The number of starts that were at most this late, in seconds, by the buckets of the histogram. */
  readonly lags: ReadonlyMap<number, number>;
};

async function sample({ operator, requestProxy }: Installation): Promise<Sample> {
  const [metrics, { checks }] = await Promise.all([operator.metrics(), requestProxy({})]);
  const lags = new Map<number, number>();
  for (const [series, value] of metrics) {
    const [, bound] = /^mesh_gateway_health_check_start_lag_seconds_bucket\{le="(.+)"\}$/.exec(series) ?? [];
    if (bound !== undefined) lags.set(bound === '+Inf' ? Infinity : Number(bound), value);
  }
  const succeeded = metrics.get('health_check_success_total{tailnet="example",type="HTTP"}') ?? 0;
  return { checks, succeeded, lags };
}

type Counts = Sample['lags'];

/** As histogram_quantile of Prometheus computes it. */
function quantile(share: number, before: Counts, after: Counts): number {
  const counts = [...after].map(([bound, count]) => ({ bound, count: count - (before.get(bound) ?? 0) }));
  const total = counts.at(-1)?.count ?? 0;
  const index = counts.findIndex(({ count }) => count >= share * total);
  const { bound, count } = counts[index] ?? { bound: NaN, count: NaN };
  const { bound: lower, count: below } = counts[index - 1] ?? { bound: 0, count: 0 };
  return lower + ((bound - lower) * (share * total - below)) / (count - below);
}
