import { afterAll, beforeAll, expect, it } from 'vitest';
import { relayName } from '../../../src/api/names.ts';
import { RELAY_PORT_SHARES } from '../../../src/api/shares.ts';
import {
  NOISY,
  printFigure,
  QUIET,
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
afterAll(() => tenants.end());

/** Fewer than one object has endpoints. */
const RANGE = { first: 20_000, last: 20_799 };
const SHARE = (RANGE.last - RANGE.first + 1) / RELAY_PORT_SHARES;

/** Creates an object with UDP endpoints; returns those that have a port, and the errors of the others. */
async function portsOf(namespace: string, name: string, count: number, net: number) {
  const targets = Array.from({ length: count }, (_, index) => `100.64.${net + (index >> 8)}.${index & 255}`);
  const endpoints = targets.map((meshIP, index) => {
    const fields = { meshIP, meshFQDN: 'dns.example.ts.net', port: 53, protocol: 'UDP' };
    return { name: `udp-${index}`, ...fields };
  });
  await tenants.admin.apply(tenantEndpoints(namespace, name, endpoints));
  const entries = await statusWhen(tenants.admin, { namespace, name }, status =>
    status.endpoints?.every(({ error = '' }) => !/not assigned|no relay port is assigned yet/.test(error))
      ? status.endpoints
      : undefined,
  );
  const assigned = await targetsOfRelays();
  return {
    have: targets.filter(target => assigned.has(`${target}:53`)).length,
    errors: new Set(entries.map(({ error }) => error)),
  };
}

async function targetsOfRelays(): Promise<ReadonlySet<string>> {
  const namespace = 'mesh-system';
  const map = await tenants.admin.get({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', namespace, name: relayName('example') },
  });
  const { targets = '' } = map['data'] as { readonly targets?: string };
  return new Set(targets.split('\n').map(line => line.split(' ')[1] ?? ''));
}

it('a namespace that wants more relay ports than there are leaves ports to another one', async () => {
  const { admin, startOperator } = tenants;
  const { metadata, ...tailnet } = tailnetBehind({ port: 1 });
  await admin.apply({ ...tailnet, metadata, spec: { tailnet: 'example.ts.net' } });
  await startOperator({ RELAY_IMAGE: 'mesh-gateway:test', RELAY_PORTS: `${RANGE.first}-${RANGE.last}` });
  const alone = await portsOf(QUIET, 'first', SHARE / 2, 0);
  const noisy = await portsOf(NOISY, 'all', 1000, 8);
  const beside = await portsOf(QUIET, 'second', SHARE / 2, 16);
  printFigure('endpoints with a relay port', {
    alone: `${alone.have} of ${SHARE / 2}`,
    beside: `${beside.have} of ${SHARE / 2}`,
  });
  expect(beside.have).toBe(SHARE / 2);
  expect(noisy.have).toBe(SHARE);
  expect([...noisy.errors]).toContainEqual(
    expect.stringContaining(`all of its ${SHARE} relay ports: remove UDP endpoints, or raise meshPods`),
  );
});
