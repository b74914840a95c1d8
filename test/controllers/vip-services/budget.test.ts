import { expect, it } from 'vitest';
import { createState } from '../../../lab/control-api/state.ts';
import { RateLimit } from '../../../src/control/call.ts';
import { coordinate, NOTHING_KNOWN } from '../../../src/controllers/vip-services/coordination.ts';
import type { Memory } from '../../../src/controllers/vip-services/coordination.ts';
import type { Claim } from '../../../src/controllers/vip-services/decision.ts';
import { ownershipOf } from '../../../src/controllers/vip-services/owners.ts';
import { servicesApiOn } from '../../support/controllers/vip-services/services-api.ts';

const START = Date.UTC(2026, 0, 15, 12);
const MINUTE_MS = 60_000;

/** The interval and the rate limit of a MeshTailnet by default, and how long a call waits for the limit. */
const [SYNC_MS, LIMIT, MAX_WAIT_MS] = [30_000, { requestsPerSecond: 5, burst: 10 }, 20_000] as const;

function claimsOf(count: number): ReadonlyMap<string, Claim> {
  const names = Array.from({ length: count }, (_, index) => `svc:web-${index}`);
  const claims = names.map((name, index): readonly [string, Claim] => [
    name,
    {
      ...{ name, object: `team-${index % 7}/web`, port: 443, tags: ['tag:mesh'], mayCreate: true },
      ...{ notAdoptable: undefined, shareWith: [] },
      ...{ kept: undefined, strategy: 'shared', cluster: 'here' },
      ...{ heartbeatMs: 300_000, staleMs: 1_800_000 },
    },
  ]);
  return new Map(claims);
}

/** An operator with many services, on a clock that only its calls and its waits advance. */
function operatorWith(count: number) {
  let nowMs = 0;
  const clock = { now: () => nowMs };
  const date = () => new Date(START + nowMs);
  const limit = new RateLimit(LIMIT);
  const calls: number[] = [];
  const domain = 'example.ts.net';
  const state = createState({
    ...{ dialect: 'vendor', domain, behaviour: {}, seed: 1, settings: {} },
    clock: { now: () => START + nowMs },
  });
  const api = servicesApiOn(state, (_name, act) => {
    nowMs += limit.take(nowMs, MAX_WAIT_MS);
    calls.push(nowMs);
    return Promise.resolve(act());
  });
  const claims = new Map(claimsOf(count));
  let [port, changing] = [443, 0];
  const results = new Map<string, number>();
  const reconcile = async (before: Memory): Promise<Memory> => {
    const services = await api.services();
    port++;
    for (const [name, claim] of [...claims].slice(0, changing)) claims.set(name, { ...claim, port });
    const devices = { devices: [], isStale: false, tags: ['tag:mesh'] };
    const advertised = new Set(claims.keys());
    const coordinated = await coordinate(
      { services, claims, advertised, api, before, ...devices },
      {
        ...{ installation: '0a1b2c3d', clock, now: date, random: () => 0.5 },
        log: { warn: () => undefined },
        count: result => void results.set(result, (results.get(result) ?? 0) + 1),
      },
    );
    nowMs += Math.min(coordinated.nextMs, SYNC_MS);
    return coordinated.memory;
  };
  let memory = Promise.resolve(NOTHING_KNOWN);
  const ages = () =>
    state.services.all().flatMap(service => {
      const ownership = ownershipOf(service);
      const owners = ownership.is === 'owned' ? ownership.owners : [];
      return owners.map(({ heartbeat }) => date().getTime() - heartbeat.getTime());
    });
  return {
    calls,
    results,
    ages,
    now: () => nowMs,
    /** The first of the services change before each reconcile. */
    change: (first: number) => void (changing = first),
    /** Reconciles for a time, with a look at the services after each. */
    run: async (ms: number, after: () => void = () => undefined) => {
      for (const end = nowMs + ms; nowMs < end;) {
        memory = memory.then(reconcile);
        await memory;
        after();
      }
    },
  };
}

it('the renewals of 500 services keep within the rate limit of a tailnet, and each is renewed in time', async () => {
  const operator = operatorWith(500);
  await operator.run(10 * MINUTE_MS);
  expect(operator.ages()).toHaveLength(500);
  const [from, before] = [operator.now(), operator.calls.length];
  let oldest = 0;
  await operator.run(15 * MINUTE_MS, () => {
    oldest = Math.max(oldest, ...operator.ages());
  });
  const minutes = (operator.now() - from) / MINUTE_MS;
  // 200 for renewals, 40 for hosts, and the lists, of 300.
  expect((operator.calls.length - before) / minutes).toBeLessThan(260);
  // A third of what makes an entry stale.
  expect(oldest).toBeLessThan(10 * MINUTE_MS);
  expect(operator.results.get('failed') ?? 0).toBe(0);
});

it('services are renewed in time while as many of others change as are written at once', async () => {
  const operator = operatorWith(60);
  await operator.run(2 * MINUTE_MS);
  operator.change(20);
  let oldest = 0;
  await operator.run(20 * MINUTE_MS, () => {
    oldest = Math.max(oldest, ...operator.ages());
  });
  expect(operator.ages()).toHaveLength(60);
  expect(operator.results.get('updated')).toBeGreaterThan(500);
  // A third of what makes an entry stale.
  expect(oldest).toBeLessThan(10 * MINUTE_MS);
});
