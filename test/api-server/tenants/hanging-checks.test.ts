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

let tenants: Tenants;
beforeAll(async () => {
  tenants = await startTenants();
});
afterAll(async () => {
  await tenants.end();
});

const QUIET_NET = '100.64.9.';

it('a namespace whose 1,000 endpoints hang delays no check of another', async () => {
  const { admin, startOperator } = tenants;
  const starts = new Map<string, number[]>();
  const proxy = await startMeshProxy(target => {
    if (!target.startsWith(QUIET_NET)) return 'silence';
    starts.set(target, [...(starts.get(target) ?? []), performance.now()]);
    return 200;
  });
  await admin.create(tailnetBehind(proxy));
  await startOperator();

  /** The longest time between two checks of an endpoint of the quiet tenant, from its creation on. */
  const quietFigure = async (): Promise<number> => {
    starts.clear();
    const endpoints = checkedEndpoints(20, index => `${QUIET_NET}${index + 1}`, { interval: '1s' });
    const object = tenantEndpoints(QUIET, 'web', endpoints);
    const createdAt = performance.now();
    await admin.create(object);
    await expect.poll(() => Math.min(...counts(starts, 20)), { timeout: 120_000 }).toBeGreaterThan(3);
    await admin.remove({ apiVersion: object.apiVersion, kind: object.kind, namespace: QUIET, name: 'web' });
    return Math.max(...[...starts.values()].flatMap(times => gapsOf([createdAt, ...times])));
  };

  const alone = await quietFigure();
  const hanging = { interval: '30s', timeout: '30s', unhealthyThreshold: 1 };
  const network = (index: number) => `100.65.${Math.floor(index / 250)}.${(index % 250) + 1}`;
  await admin.create(tenantEndpoints(NOISY, 'web', checkedEndpoints(1000, network, hanging)));
  await statusWhen(admin, { namespace: NOISY, name: 'web' }, status => status.endpoints?.length === 1000);
  const beside = await quietFigure();
  printFigure('longest time between two checks of an endpoint each 1 s', {
    alone: `${Math.round(alone)} ms`,
    beside: `${Math.round(beside)} ms`,
  });
  expect(beside).toBeLessThan(10_000);
});

function counts(starts: ReadonlyMap<string, readonly number[]>, endpoints: number): readonly number[] {
  return starts.size < endpoints ? [0] : [...starts.values()].map(times => times.length);
}

function gapsOf(times: readonly number[]): readonly number[] {
  return times.slice(1).map((at, index) => at - (times[index] ?? NaN));
}
