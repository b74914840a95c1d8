import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { isRunning, killProcess, signalProcess } from '../../../lab/process/process.ts';
import type { ProcessRecord } from '../../../lab/process/process.ts';
import { starterIn } from '../../../lab/process/starter.ts';
import { startDaemon } from '../../../lab/tailnet/mesh-node.ts';
import { changeNode, listNodes } from '../../../lab/tailnet/tailnet.ts';
import { eventually } from '../../support/eventually.ts';
import { CHECK } from '../../support/lab/health/faults.ts';
import { startHttpService } from '../../support/lab/health/services.ts';
import type { HttpService } from '../../support/lab/health/services.ts';
import { startHealthWorld } from '../../support/lab/health/world.ts';
import type { HealthWorld } from '../../support/lab/health/world.ts';

let world: HealthWorld;
let good: HttpService;
let bad: HttpService;
beforeAll(async () => {
  [world, good, bad] = await Promise.all([startHealthWorld(), startHttpService(), startHttpService()]);
  await bad.set('failing');
  world.putChecked('good', good.port);
  world.putChecked('bad', bad.port);
  await untilStatuses();
});
afterAll(async () => {
  await world.end();
  await good.close();
  await bad.close();
});

async function untilStatuses(): Promise<void> {
  await eventually(() => {
    expect(world.entry('good')).toMatchObject({ status: 'Healthy' });
    expect(world.entry('bad')).toMatchObject({ status: 'Unhealthy', error: 'got 503, expected 200' });
  });
  await eventually(async () => expect((await world.responseOf('good')).status).toBe(200));
}

/** The process with the proxy. */
function meshd(): ProcessRecord {
  const record = world.folder.processes().findLast(each => each.name === 'meshd' && isRunning(each));
  if (!record) throw new Error('meshd does not run');
  return record;
}

/** The number of checks with an unknown result. */
async function unknownResults(): Promise<number> {
  const samples = [...(await world.standalone.metrics())];
  const unknown = samples.filter(([name]) => name.startsWith('mesh_gateway_health_check_unknown_total{'));
  return unknown.reduce((sum, [, count]) => sum + count, 0);
}

/** More than both endpoints need to change, if these results counted. */
const MORE_THAN_THRESHOLDS = 10;

async function expectUnknownResults(): Promise<void> {
  const before = await unknownResults();
  await eventually(async () =>
    expect(await unknownResults()).toBeGreaterThanOrEqual(before + MORE_THAN_THRESHOLDS),
  );
}

describe('while the proxy of the mesh is away, no endpoint changes its health', () => {
  it('frozen, and continued', async () => {
    const before = world.seen.length;
    const frozen = meshd();
    signalProcess(frozen, 'SIGSTOP');
    try {
      await expectUnknownResults();
    } finally {
      signalProcess(frozen, 'SIGCONT');
    }
    await untilStatuses();
    expect(world.seen.slice(before)).toEqual([]);
  });

  it('killed, and started again', async () => {
    const before = world.seen.length;
    await killProcess(meshd());
    await expectUnknownResults();
    const starter = starterIn(world.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
    startDaemon(starter, { hostname: 'meshd', proxy: world.lab.proxy });
    await untilStatuses();
    expect(world.seen.slice(before)).toEqual([]);
  });
});

describe('a device that leaves the tailnet', () => {
  it('makes its endpoints unhealthy until it is back', async () => {
    const { admin } = world.lab.tailnet;
    const node = (await listNodes(admin)).find(({ hostname }) => hostname === 'web-1');
    await changeNode(admin, node?.id ?? '', 'offline');
    const error = `timeout after ${CHECK.timeout}`;
    await eventually(() => expect(world.entry('good')).toMatchObject({ status: 'Unhealthy', error }));
    await changeNode(admin, node?.id ?? '', 'online');
    await untilStatuses();
  });
});
