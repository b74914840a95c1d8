import { afterAll, beforeAll, expect, it } from 'vitest';
import { EVENTS } from '../../../src/api/shares.ts';
import { until } from '../../../lab/process/wait.ts';
import {
  NOISY,
  printFigure,
  QUIET,
  startMeshProxy,
  startTenants,
  tailnetBehind,
  tenantEndpoints,
} from '../../support/cluster/tenants.ts';
import type { Tenants } from '../../support/cluster/tenants.ts';

let tenants: Tenants;
beforeAll(async () => {
  tenants = await startTenants();
});
afterAll(() => tenants.end());

/** An object whose status is False/InvalidReference at once, which is an Event. */
function refused(namespace: string, name: string) {
  const fields = { name: 'web', meshIP: '100.64.0.1', meshFQDN: 'web.example.ts.net', port: 80 };
  return tenantEndpoints(namespace, name, [{ ...fields, protocol: 'HTTP', externalTarget: '127.0.0.1:80' }]);
}

/** How long it takes until a new object of the quiet tenant has its Event. */
async function msToEvent(name: string): Promise<number> {
  const { admin } = tenants;
  const begin = performance.now();
  await admin.apply(refused(QUIET, name));
  await until(`the Event of ${name}`, async note => {
    const events = await eventsIn(QUIET);
    note(JSON.stringify(events));
    return events.includes(name);
  });
  return performance.now() - begin;
}

/** The names of the objects that have Events in a namespace. */
async function eventsIn(namespace: string): Promise<readonly unknown[]> {
  const events = await tenants.admin.list({ apiVersion: 'events.k8s.io/v1', kind: 'Event', namespace });
  return events.map(event => (event['regarding'] as { readonly name?: string } | undefined)?.name);
}

it('a namespace with far more Events than its share suppresses none of another one', async () => {
  const { admin, startOperator } = tenants;
  await admin.apply(tailnetBehind(await startMeshProxy(() => 200)));
  const operator = await startOperator();
  const { metricsPort } = await operator.line('serving metrics and probes');
  const alone = await msToEvent('first');
  const objects = Array.from({ length: 2 * EVENTS.ofNamespace.atOnce }, (_, index) => `noisy-${index}`);
  // At once: a machine that takes a second for each would never exceed the share.
  await Promise.all(objects.map(name => admin.apply(refused(NOISY, name))));
  await until('Events of the noisy tenant to be dropped', async note => {
    const metrics = await (await fetch(`http://127.0.0.1:${String(metricsPort)}/metrics`)).text();
    const [, dropped] = /^mesh_gateway_events_total\{outcome="dropped"\} (\d+)$/m.exec(metrics) ?? [];
    note(String(dropped));
    return Number(dropped) > 0;
  });
  const beside = await msToEvent('second');
  printFigure('time to the Event of a new object', {
    alone: `${alone.toFixed(0)} ms`,
    beside: `${beside.toFixed(0)} ms`,
  });
  // Those of the quiet tenant need not wait for them.
  const ofNoisy = await until('the share of the noisy tenant to be written', async note => {
    const { length } = await eventsIn(NOISY);
    note(`${length} Events`);
    return length >= EVENTS.ofNamespace.atOnce ? length : undefined;
  });
  expect(ofNoisy).toBeGreaterThanOrEqual(EVENTS.ofNamespace.atOnce);
});
