import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseTrust } from '../../../src/api/trust.ts';
import {
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
import { CERTIFICATE } from '../../support/traffic/certificates.ts';

let tenants: Tenants;

beforeAll(async () => {
  tenants = await startTenants();
});
afterAll(() => tenants.end());

function endpointWithCa(configMap: string, at = 0) {
  const name = `e${at}`;
  const meshIP = `100.65.${at >> 8}.${at & 255}`;
  const meshFQDN = `${name}.example.ts.net`;
  return { name, meshIP, meshFQDN, port: 443, protocol: 'HTTPS', tls: { caRef: { name: configMap } } };
}

/** A ConfigMap with a bundle that no other one has, of about this number of kilobytes. */
function bundle(namespace: string, name: string, kilobytes: number, at: number) {
  const count = Math.ceil((kilobytes * 1024) / CERTIFICATE.length) + at;
  const data = { 'ca.crt': CERTIFICATE.repeat(count) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
}

/** Applies an object with a new CA; returns after how many ms it is trusted. */
async function timeOf(name: string, at: number): Promise<number> {
  const { admin } = tenants;
  await admin.create(bundle(QUIET, name, 1, at));
  const startedAt = performance.now();
  await admin.create(tenantEndpoints(QUIET, name, [endpointWithCa(name)]));
  await readyWhen({ namespace: QUIET, name }, 'EndpointsConfigured');
  return performance.now() - startedAt;
}

function readyWhen(of: { readonly namespace: string; readonly name: string }, reason: string, part = '') {
  return statusWhen(tenants.admin, of, ({ conditions = [], endpoints }) => {
    const ready = conditions.find(({ type }) => type === 'Ready');
    return ready?.reason === reason && ready.message.includes(part) ? { endpoints } : undefined;
  });
}

/** What is published of a namespace: the kilobytes of each reference, or why it has none. */
async function publishedOf(namespace: string): Promise<Readonly<Record<string, number | string>>> {
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'mesh-system', name: 'mesh-trust' };
  const { data } = (await tenants.admin.get(ref)) as unknown as { readonly data: Record<string, string> };
  const own = [...parseTrust(data)].filter(([text]) => text.startsWith(`${namespace}/`));
  return Object.fromEntries(
    own.map(([text, ca]) => [text, ca.is === 'found' ? Math.round(ca.pem.length / 1024) : ca.reason]),
  );
}

describe('the certificates of two tenants', () => {
  it('are published for one, while those of the other grow beyond its share', async () => {
    const { admin } = tenants;
    await admin.create(tailnetBehind(await startMeshProxy(() => 200)));
    await tenants.startOperator({ SYNC_PERIOD: '2s' });
    const alone = await timeOf('first', 1);

    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const [at, name] of names.entries()) await admin.create(bundle(NOISY, name, 20, at));
    const endpoints = names.map((name, at) => endpointWithCa(name, at));
    await admin.create(tenantEndpoints(NOISY, 'grows', endpoints));
    await readyWhen({ namespace: NOISY, name: 'grows' }, 'EndpointsConfigured');
    const missing = Array.from({ length: 1000 }, (_, at) =>
      endpointWithCa(`missing-${at}-${'x'.repeat(200)}`, at),
    );
    await admin.create(tenantEndpoints(NOISY, 'missing', missing));
    for (const [at, name] of names.entries()) await admin.apply(bundle(NOISY, name, 220, at));
    const grown = await readyWhen({ namespace: NOISY, name: 'grows' }, 'InvalidReference', 'has no room');
    expect(grown.endpoints?.map(({ status }) => status)).toEqual(names.map(() => 'Healthy'));
    await statusWhen(admin, { namespace: NOISY, name: 'missing' }, ({ endpoints }) =>
      endpoints?.some(({ error }) => error?.includes('share of the 900 KB')),
    );

    const beside = await timeOf('second', 2);
    printFigure('time from an object with a new CA until it is trusted', {
      alone: `${Math.round(alone)} ms`,
      beside: `${Math.round(beside)} ms`,
    });
    expect(beside).toBeLessThan(20_000);
    expect(await publishedOf(QUIET)).toEqual({ 'quiet/first/ca.crt': 2, 'quiet/second/ca.crt': 2 });
  });
});
