import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withLogTail } from '../../../lab/process/process.ts';
import { until } from '../../../lab/process/wait.ts';
import { startComposed } from '../../support/lab/traffic/composed.ts';
import type { Composed } from '../../support/lab/traffic/composed.ts';
import { startExtensionProcess } from '../../support/lab/traffic/extension-process.ts';
import type { ExtensionProcess } from '../../support/lab/traffic/extension-process.ts';
import { untilRead } from '../../support/lab/traffic/gateway-reads.ts';
import { startLoad } from '../../support/lab/traffic/load.ts';
import type { Load } from '../../support/lab/traffic/load.ts';
import { manyClusters } from '../../support/lab/traffic/many-clusters.ts';
import type { ManyClusters } from '../../support/lab/traffic/many-clusters.ts';
import { meshTailnet } from '../../support/lab/traffic/objects.ts';

/**
 * The number of clusters, the durations of the outages, and within which time after the return a route works and all
 * clusters are current: Envoy reconnects each by itself, after a random time of up to 30 s. The short form has time
 * limits for slow machines.
 */
const FORM =
  process.env['MESH_GATEWAY_FORM'] === 'long'
    ? { clusters: 100, awayMs: 150_000, frozenMs: 90_000, worksMs: 2_000, currentMs: 30_500 }
    : { clusters: 12, awayMs: 5_000, frozenMs: 3_000, worksMs: 60_000, currentMs: 90_000 };

const PER_SECOND = 200;

/**
 * Envoy Gateway retries a call of an absent server after 1 s, 1.6 s, 2.56 s ... 120 s, ± 20 %, counted from the first
 * call that failed; the server cannot shorten that. So a route may wait longer after the return the longer it has
 * waited before.
 */
function worksWithinMs(waitedMs: number): number {
  return FORM.worksMs + 1.2 * Math.min(120_000, 1_000 + 0.6 * waitedMs);
}

let system: Composed<ExtensionProcess>;
let world: ManyClusters;
let load: Load;
beforeAll(async () => {
  system = await startComposed(startExtensionProcess);
  const { lab, gateway } = system;
  world = manyClusters(system, FORM.clusters);
  const { targets } = world;
  system.put('routes', [meshTailnet(lab, [lab.proxy]), ...world.routes()]);
  world.moveTo('one');
  const all = targets.map(target => until('an answer', () => world.endpointFor(target)));
  await withLogTail(gateway, Promise.all(all));
  await makeRoute('before');
  load = startLoad({ listener: gateway.listeners.http, targets, perSecond: PER_SECOND });
});
afterAll(async () => {
  await load.stop();
  const requests = { answered: load.answered(), failed: load.failures().length, slowestMs: load.slowestMs() };
  console.log('an extension server that is away:', { ...requests, ...measured });
  await system.end();
});

/** Creates a route, which Envoy Gateway reads and calls the extension server for. */
async function makeRoute(name: string): Promise<void> {
  await untilRead(system.gateway, () => system.put(name, [world.route(name)]));
}

/** In milliseconds after the return. */
const measured: Record<string, number> = {};

describe('no request fails', () => {
  it('while the extension server is killed and started again', async () => {
    await system.extension.kill();
    world.moveTo('two');
    await system.extension.start('first');
    const backMs = performance.now();
    measured['killed: current'] = await world.currentAfter(backMs, 'two');
    await makeRoute('after-kill');
    await world.worksAfter(backMs, 'after-kill');
    expect(load.failures()).toEqual([]);
    expect(measured['killed: current']).toBeLessThan(FORM.currentMs);
  });

  it('while it is frozen', async () => {
    system.extension.freeze();
    await makeRoute('while-frozen');
    world.moveTo('one');
    await sleep(FORM.frozenMs);
    const backMs = performance.now();
    system.extension.thaw();
    const [worksMs, currentMs] = await Promise.all([
      world.worksAfter(backMs, 'while-frozen'),
      world.currentAfter(backMs, 'one'),
    ]);
    Object.assign(measured, { 'frozen: route works': worksMs, 'frozen: current': currentMs });
    expect(load.failures()).toEqual([]);
    expect(worksMs).toBeLessThan(FORM.worksMs);
    expect(currentMs).toBeLessThan(FORM.currentMs);
  });

  it('while it returns after a long outage and changes every cluster', async () => {
    await system.extension.kill();
    await makeRoute('made-early');
    const madeMs = performance.now();
    world.moveTo('two');
    await sleep(FORM.awayMs);
    await system.extension.start('second');
    const backMs = performance.now();
    const [worksMs, currentMs] = await Promise.all([
      world.worksAfter(backMs, 'made-early'),
      world.currentAfter(backMs, 'two'),
    ]);
    Object.assign(measured, { 'away: route made early works': worksMs, 'away: current': currentMs });
    await world.untilAllUse(system.extension.targetOf('second'));
    expect(load.failures()).toEqual([]);
    expect(currentMs).toBeLessThan(FORM.currentMs);
    expect(worksMs).toBeLessThan(worksWithinMs(backMs - madeMs));
  });

  it('while it is down again, with changes shortly before it returns unchanged', async () => {
    await system.extension.kill();
    await sleep(FORM.awayMs);
    const starting = system.extension.start('second');
    world.moveTo('one');
    await makeRoute('made-late');
    const madeMs = performance.now();
    await starting;
    const backMs = performance.now();
    // Envoy Gateway may have read the route only now, without a failed call.
    const [fromMs, waitedMs] = [Math.max(backMs, madeMs), Math.max(0, backMs - madeMs)];
    measured['away again: route made late waited before'] = Math.round(waitedMs);
    const [worksMs, currentMs] = await Promise.all([
      world.worksAfter(fromMs, 'made-late'),
      world.currentAfter(backMs, 'one'),
    ]);
    Object.assign(measured, {
      'away again: route made late works': worksMs,
      'away again: current': currentMs,
    });
    expect(load.failures()).toEqual([]);
    expect(worksMs).toBeLessThan(worksWithinMs(waitedMs));
    expect(currentMs).toBeLessThan(FORM.currentMs);
  });

  it('of all that were sent', async () => {
    await load.stop();
    expect(load.failures()).toEqual([]);
    expect(load.answered()).toBeGreaterThan(PER_SECOND);
  });
});
