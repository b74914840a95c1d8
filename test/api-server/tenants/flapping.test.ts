import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  checkedEndpoints,
  NOISY,
  printFigure,
  QUIET,
  startMeshProxy,
  startTenants,
  statusWhen,
  tailnetBehind,
  tenantEndpoints,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';
import type { ServedProcess } from '../../support/standalone/served-process.ts';

let tenants: Tenants;
beforeAll(async () => {
  tenants = await startTenants();
});
afterAll(() => tenants.end());

const SECOND = { interval: '1s', healthyThreshold: 1, unhealthyThreshold: 1 };
const FLAPPING_NET = '100.65.';
const QUIET_TARGET = '100.64.9.1:80';
const STEADY_TARGET = '100.64.8.1:80';

it('a namespace with 1,000 endpoints that flap delays no status, neither of another namespace nor of its own', async () => {
  const { admin, startOperator } = tenants;
  const failing = new Set<string>();
  const checks = new Map<string, number>();
  const proxy = await startMeshProxy(target => {
    if (!target.startsWith(FLAPPING_NET)) return failing.has(target) ? 503 : 200;
    const count = (checks.get(target) ?? 0) + 1;
    checks.set(target, count);
    return count % 2 === 0 ? 503 : 200;
  });
  await admin.create(tailnetBehind(proxy));
  const operator = await startOperator();
  await admin.create(
    tenantEndpoints(
      QUIET,
      'web',
      checkedEndpoints(1, () => '100.64.9.1', SECOND),
    ),
  );

  /** The time from a failure of the first endpoint of an object, or the end of it, until its status has it. */
  const msToStatus = async (namespace: string, target: string, isFailing: boolean): Promise<number> => {
    const begin = performance.now();
    if (isFailing) failing.add(target);
    else failing.delete(target);
    const wanted = isFailing ? 'Unhealthy' : 'Healthy';
    await statusWhen(
      admin,
      { namespace, name: 'web' },
      ({ endpoints = [] }) => endpoints[0]?.status === wanted && endpoints[0].lastChecked !== undefined,
    );
    return performance.now() - begin;
  };

  await msToStatus(QUIET, QUIET_TARGET, false);
  const alone = await msToStatus(QUIET, QUIET_TARGET, true);
  await msToStatus(QUIET, QUIET_TARGET, false);

  const network = (index: number) =>
    index === 0 ? '100.64.8.1' : `${FLAPPING_NET}${Math.floor(index / 250)}.${(index % 250) + 1}`;
  await admin.create(tenantEndpoints(NOISY, 'web', checkedEndpoints(1000, network, SECOND)));
  await msToStatus(NOISY, STEADY_TARGET, false);
  // A busy machine does not check 1,000 endpoints each second.
  await statusWhen(
    admin,
    { namespace: NOISY, name: 'web' },
    ({ endpoints = [] }) => endpoints.filter(({ error }) => error?.startsWith('flapping')).length > 900,
    { timeoutMs: 400_000 },
  );
  const beforeMs = performance.now();
  const writesBefore = await writesOf(operator);
  await sleep(5000);
  const writes = (await writesOf(operator)) - writesBefore;
  const seconds = (performance.now() - beforeMs) / 1000;
  const own = await msToStatus(NOISY, STEADY_TARGET, true);
  const beside = await msToStatus(QUIET, QUIET_TARGET, true);
  printFigure('time from a failure to the status, with a check each 1 s', {
    alone: `${Math.round(alone)} ms`,
    beside: `${Math.round(beside)} ms`,
  });
  console.log(
    `an endpoint beside 1,000 that flap: ${Math.round(own)} ms; their writes in ${seconds.toFixed(1)} s: ${writes}`,
  );
  expect(writes).toBeLessThanOrEqual(seconds + 1);
  expect(beside).toBeLessThan(10_000);
});

/** How many statuses an operator has written. */
async function writesOf(operator: ServedProcess): Promise<number> {
  const { metricsPort } = await operator.line('serving metrics and probes');
  const text = await (await fetch(`http://127.0.0.1:${String(metricsPort)}/metrics`)).text();
  return Number(/^rest_client_requests_total\{code="200",verb="apply"\} (\d+)$/m.exec(text)?.[1]);
}
