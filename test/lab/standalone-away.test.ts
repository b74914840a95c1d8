import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { withLogTail } from '../../lab/process/process.ts';
import { waitFor } from '../../lab/process/wait.ts';
import { startLoad } from '../support/lab/traffic/load.ts';
import type { Load } from '../support/lab/traffic/load.ts';
import { manyClusters } from '../support/lab/traffic/many-clusters.ts';
import type { ManyClusters } from '../support/lab/traffic/many-clusters.ts';
import { meshTailnet } from '../support/lab/traffic/objects.ts';
import { startSystem } from '../support/lab/traffic/system.ts';
import type { System } from '../support/lab/traffic/system.ts';

/**
 * How long it is away, and how soon then a route works and all clusters are current: Envoy asks again for each by itself, at
 * a moment that it chooses by chance from 30 s at most. The short form leaves time to machines that do much else.
 */
const FORM =
  process.env['MESH_GATEWAY_FORM'] === 'long'
    ? { awayMs: 150_000, worksMs: 2_000, currentMs: 30_500 }
    : { awayMs: 5_000, worksMs: 60_000, currentMs: 90_000 };

/** Of two routes; Envoy Gateway takes up to a seventh of a second for each object that it reads when one has changed. */
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
  const all = targets.map(target => waitFor('an answer', () => world.endpointFor(target)));
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

/** Longer than from one change of ours to the next, and than Envoy Gateway takes to read what was changed. */
const QUIET_MS = 10_000;

/** Waits until Envoy Gateway has sent no request for a while: failed calls would be retried with growing backoff. */
async function untilQuiet(): Promise<void> {
  let [seen, sinceMs] = [-1, performance.now()];
  const isQuiet = async () => {
    const samples = [...(await system.standalone.metrics())];
    const calls = samples.filter(([name]) => name.startsWith('grpc_server_requests_total'));
    const now = calls.reduce((sum, [, count]) => sum + count, 0);
    if (now !== seen) [seen, sinceMs] = [now, performance.now()];
    return performance.now() - sinceMs > QUIET_MS || undefined;
  };
  await waitFor('Envoy Gateway to have nothing to ask', isQuiet);
}

/** The address that another version has Envoy dial, so that every cluster changes. */
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
