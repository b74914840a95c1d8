import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { until } from '../../../lab/process/wait.ts';
import {
  QUIET,
  startMeshProxy,
  startTenants,
  statusWhen,
  tailnetBehind,
  tenantEndpoints,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';
import { IS_LONG } from '../../support/eventually.ts';

const OBJECTS = 100;
const AWAY_MS = IS_LONG ? 120_000 : 20_000;

let tenants: Tenants;
beforeAll(async () => {
  tenants = await startTenants();
});
afterAll(() => tenants.end());

/** A checked endpoint with a port of its own, so that it has a check of its own. */
function checked(index: number) {
  const healthCheck = {
    enabled: true,
    interval: '5s',
    timeout: '2s',
    healthyThreshold: 1,
    unhealthyThreshold: 1,
  };
  const address = { meshIP: '100.64.0.1', meshFQDN: 'web.example.ts.net', port: 1000 + index };
  return tenantEndpoints(QUIET, nameOf(index), [{ name: 'web', ...address, protocol: 'HTTP', healthCheck }]);
}

function nameOf(index: number): string {
  return `web-${index}`;
}

/** Waits until the endpoints of all objects have a status. */
async function untilAllAre(status: string): Promise<void> {
  for (let index = 0; index < OBJECTS; index++) {
    await statusWhen(tenants.admin, { namespace: QUIET, name: nameOf(index) }, ({ endpoints }) =>
      endpoints?.every(endpoint => endpoint.status === status && endpoint.lastChecked !== undefined)
        ? true
        : undefined,
    );
  }
}

/** Counts the requests of a process to the API server about once a second, until it is stopped. */
function countRequests(metricsPort: unknown) {
  const counts: { readonly atMs: number; readonly total: number }[] = [];
  const count = async () => {
    const text = await (await fetch(`http://127.0.0.1:${String(metricsPort)}/metrics`)).text();
    const lines = text.matchAll(/^rest_client_requests_total\{.*\} (\d+)$/gm);
    const total = [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
    counts.push({ atMs: performance.now(), total });
  };
  const timer = setInterval(() => void count().catch(() => undefined), 1000);
  return {
    stop: () => clearInterval(timer),
    /** On a busy machine a count comes late, and has the requests of a longer time. */
    perSecond: () =>
      counts.slice(1).map(({ atMs, total }, index) => {
        const before = counts[index] ?? { atMs, total };
        const seconds = Math.max(1, (atMs - before.atMs) / 1000);
        return Math.round((total - before.total) / seconds);
      }),
  };
}

it(`all objects are current within a minute of the return of an API server that was away for ${AWAY_MS / 1000} s`, async () => {
  const { admin, server, startOperator } = tenants;
  const service = { status: 200 };
  await admin.apply(tailnetBehind(await startMeshProxy(() => service.status)));
  for (let index = 0; index < OBJECTS; index++) await admin.apply(checked(index));
  const operator = await startOperator();
  const { metricsPort } = await operator.line('serving metrics and probes');
  await untilAllAre('Healthy');

  await server.kill();
  service.status = 503;
  const away = countRequests(metricsPort);
  await sleep(AWAY_MS);
  away.stop();
  await server.restart();
  const back = countRequests(metricsPort);
  const backAt = performance.now();
  // What a user changes after that is part of what has to be current.
  await admin.apply(tenantEndpoints(QUIET, 'new', []));
  await untilAllAre('Unhealthy');
  await until('the status of a new object', async () =>
    statusWhen(admin, { namespace: QUIET, name: 'new' }, ({ conditions }) => conditions?.length),
  );
  const tookMs = performance.now() - backAt;
  back.stop();

  console.log(`requests per second while the API server was away: ${away.perSecond().join(' ')}`);
  console.log(`requests per second after its return: ${back.perSecond().join(' ')}`);
  console.log(`${OBJECTS} objects were current after ${(tookMs / 1000).toFixed(1)} s`);
  expect(tookMs).toBeLessThan(60_000);
  // Checks of all objects fail in 5 s, and each then tries to write its status; on a busy machine in one second.
  expect(Math.max(...away.perSecond())).toBeLessThan(IS_LONG ? OBJECTS : 2 * OBJECTS);
  expect(Math.max(...back.perSecond())).toBeLessThan(10 * OBJECTS);
});
