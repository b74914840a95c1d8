import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withLogTail } from '../../../lab/process/process.ts';
import { until } from '../../../lab/process/wait.ts';
import { startLoad } from '../../support/lab/traffic/load.ts';
import type { Load } from '../../support/lab/traffic/load.ts';
import { manyClusters } from '../../support/lab/traffic/many-clusters.ts';
import type { ManyClusters } from '../../support/lab/traffic/many-clusters.ts';
import { meshTailnet } from '../../support/lab/traffic/objects.ts';
import { startSystem } from '../../support/lab/traffic/system.ts';
import type { System } from '../../support/lab/traffic/system.ts';

/**
 * How long the extension server is away, and within which time a route works and all clusters are current: Envoy Gateway may
 * connect again after 144 s, and Envoy reconnects each cluster by itself, after a random time of up to 30 s. The short form has
 * time limits for slow machines.
 */
const FORM =
  process.env['MESH_GATEWAY_FORM'] === 'long'
    ? { awayMs: 150_000, worksMs: 150_000, currentMs: 30_500 }
    : { awayMs: 5_000, worksMs: 60_000, currentMs: 90_000 };

/** For two routes; Envoy Gateway takes up to 150 ms for each object that it reads when one has changed. */
const CLUSTERS = 20;

const PER_SECOND = 200;

let system: System;
let world: ManyClusters;
let load: Load;
beforeAll(async () => {
  system = await startSystem();
  const { lab, gateway } = system;
  world = manyClusters(system, CLUSTERS);
  const { targets } = world;
  system.put('routes', [meshTailnet(lab, [lab.proxy]), ...world.routes()]);
  world.moveTo('one');
  const all = targets.map(target => until('an answer', () => world.endpointFor(target)));
  await withLogTail(gateway, Promise.all(all));
  await untilQuiet();
  load = startLoad({ listener: gateway.listeners.http, targets, perSecond: PER_SECOND });
});
afterAll(async () => {
  try {
    await load.stop();
  } finally {
    await system.end();
  }
});

/** Longer than the time between two of our changes, and than Envoy Gateway takes to read one. */
const QUIET_MS = 10_000;

/** Waits until Envoy Gateway has sent no request for a while: failed calls would be retried with a growing backoff. */
async function untilQuiet(): Promise<void> {
  let [seen, sinceMs] = [-1, performance.now()];
  const isQuiet = async () => {
    const samples = [...(await system.standalone.metrics())];
    const calls = samples.filter(([name]) => name.startsWith('grpc_server_requests_total'));
    const now = calls.reduce((sum, [, count]) => sum + count, 0);
    if (now !== seen) [seen, sinceMs] = [now, performance.now()];
    return performance.now() - sinceMs > QUIET_MS;
  };
  await until('Envoy Gateway to have nothing to ask', isQuiet);
}

/** The address that Envoy dials with another version, so that every cluster changes. */
function anotherTarget(): string {
  return `localhost:${system.standalone.address.split(':')[1] ?? ''}`;
}

it('standalone that returns as another version after a long outage has missed no change, and no request failed', async () => {
  await system.standalone.kill();
  system.put('made-early', [world.route('made-early')]);
  world.moveTo('two');
  await sleep(FORM.awayMs);
  system.put('made-late', [world.route('made-late')]);
  await system.standalone.start({ EXTENSION_SERVER_ADDRESS: anotherTarget() });
  const backMs = performance.now();
  const [earlyMs, lateMs, currentMs] = await Promise.all([
    world.worksAfter(backMs, 'made-early'),
    world.worksAfter(backMs, 'made-late'),
    world.currentAfter(backMs, 'two'),
  ]);
  await world.untilAllUse(anotherTarget());
  await load.stop();
  const requests = { answered: load.answered(), slowestMs: load.slowestMs() };
  console.log('standalone that was away:', { ...requests, earlyMs, lateMs, currentMs });
  expect(load.failures()).toEqual([]);
  expect(load.answered()).toBeGreaterThan(PER_SECOND);
  expect(Math.max(earlyMs, lateMs)).toBeLessThan(FORM.worksMs);
  expect(currentMs).toBeLessThan(FORM.currentMs);
});
