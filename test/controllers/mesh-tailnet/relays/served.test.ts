import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { servedServicesOf } from '../../../../src/controllers/mesh-tailnet/relays/served.ts';
import { createGuard } from '../../../../src/traffic/address-guard.ts';
import { endpoint } from '../../../support/objects.ts';

const GUARD = createGuard({ allow: [], refuse: ['100.88.0.0/16'], apiServer: [] });
const OPTIONS = { guard: GUARD, before: new Set<string>() };

type Fields = Readonly<Record<string, unknown>>;

/** An object with the endpoint `web`, which is healthy, and the registered service `shop` toward it. */
function offering(fields: {
  readonly endpoint?: Fields;
  readonly entry?: Fields;
  readonly service?: Fields;
  readonly services?: readonly Fields[];
  readonly state?: Fields | undefined;
  readonly states?: readonly Fields[];
  readonly metadata?: Fields;
}): Kinds['MeshEndpoints'] {
  const { service, services = [{ name: 'shop', port: 443, targetEndpoint: 'web', ...service }] } = fields;
  const state = { name: services[0]?.['name'], status: 'Registered', vipAddress: '100.100.0.1' };
  const { states = [{ ...state, ...fields.state }] } = fields;
  const entry = { name: 'web', status: 'Healthy', address: '100.64.0.1:8080', ...fields.entry };
  return {
    kind: 'MeshEndpoints',
    metadata: { name: 'shop', namespace: 'default', ...fields.metadata },
    spec: { endpoints: [endpoint(fields.endpoint)], serviceDiscovery: { vipServices: services } },
    status: { endpoints: [entry], vipServices: states },
  } as unknown as Kinds['MeshEndpoints'];
}

const SHOP = { name: 'svc:shop', port: 443, via: 'mesh', target: '100.64.0.1:8080', isAdvertised: true };

const EXTERNAL = { endpoint: { externalTarget: 'Shop.example.com:8443' } };
const RESOLVED = { externalTarget: 'Shop.example.com:8443', resolvedAddresses: ['8.8.8.8', '8.8.4.4'] };

describe('the VIP services of one object', () => {
  it.each<[string, Parameters<typeof offering>[0], Fields | undefined]>([
    ['toward the address of the endpoint', {}, SHOP],
    ['by a name with svc:', { service: { name: 'svc:shop' } }, SHOP],
    ['while it waits for approval', { state: { status: 'Pending' } }, SHOP],
    ['not where it failed', { state: { status: 'Failed' } }, undefined],
    ['not where another object has the name', { state: { status: 'Conflict' } }, undefined],
    ['not where the tailnet has no services', { state: { status: 'NotSupported' } }, undefined],
    ['not before it has a state', { states: [] }, undefined],
    ['not toward an endpoint that does not exist', { service: { targetEndpoint: 'api' } }, undefined],
    ['not toward a UDP endpoint', { endpoint: { protocol: 'UDP' } }, undefined],
    ['not toward an address that gets no traffic', { endpoint: { meshIP: '100.88.0.1' } }, undefined],
    ['not toward an address of a service', { endpoint: { meshIP: '100.100.0.1' } }, undefined],
    ['withdrawn while the endpoint is not healthy', { entry: { status: 'Unhealthy' } }, withdrawn(SHOP)],
    ['withdrawn while its health is not known', { entry: { name: 'other' } }, withdrawn(SHOP)],
    [
      'withdrawn while its health is that of another address',
      { entry: { address: '100.64.0.9:8080' } },
      withdrawn(SHOP),
    ],
    [
      'toward the first address of an external target',
      { ...EXTERNAL, entry: RESOLVED },
      { ...SHOP, via: 'direct', target: '8.8.8.8:8443' },
    ],
    ['not toward an external target that is not resolved', EXTERNAL, undefined],
    [
      'not toward addresses of another external target',
      { ...EXTERNAL, entry: { ...RESOLVED, externalTarget: 'old.example.com:8443' } },
      undefined,
    ],
    [
      'not toward an external target with a private address',
      { ...EXTERNAL, entry: { ...RESOLVED, resolvedAddresses: ['8.8.8.8', '10.0.0.1'] } },
      undefined,
    ],
  ])('are served %s', (_, fields, expected) => {
    expect(servedServicesOf([offering(fields)], OPTIONS)).toEqual(expected === undefined ? [] : [expected]);
  });
});

describe('a VIP service that was served', () => {
  it.each<[string, string, number]>([
    ['goes on where a change of it failed', 'Failed', 1],
    ['ends where another object or owner has its name', 'Conflict', 0],
  ])('%s', (_, status, count) => {
    const options = { guard: GUARD, before: new Set(['svc:shop']) };
    expect(servedServicesOf([offering({ state: { status } })], options)).toHaveLength(count);
  });
});

function withdrawn(service: Fields): Fields {
  return { ...service, isAdvertised: false };
}

/** An object with many services. */
function many(count: number, namespace: string, second: number): Kinds['MeshEndpoints'] {
  const names = Array.from({ length: count }, (_, index) => `${namespace}-${index}`);
  const creationTimestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
  return offering({
    metadata: { namespace, creationTimestamp },
    services: names.map(name => ({ name, port: 443, targetEndpoint: 'web' })),
    states: names.map(name => ({ name, status: 'Registered' })),
  });
}

describe('the VIP services of several objects', () => {
  it('are those of the oldest that has a name', () => {
    const [newer, older] = ['2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z'];
    const served = servedServicesOf(
      [
        offering({ metadata: { name: 'b', creationTimestamp: newer } }),
        offering({ metadata: { name: 'a', creationTimestamp: older }, service: { port: 80 } }),
      ],
      OPTIONS,
    );
    expect(served.map(({ port }) => port)).toEqual([80]);
  });

  it('are at most a quarter of what a tailnet may have for one namespace, the older objects first', () => {
    const objects = [many(300, 'new', 9), many(100, 'one', 1), many(100, 'two', 2), many(100, 'one', 3)];
    const counts = new Map<string, number>();
    for (const { name } of servedServicesOf(objects, OPTIONS)) {
      const namespace = name.slice(4, 7);
      counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
    expect([...counts]).toEqual([
      ['one', 100],
      ['two', 100],
      ['new', 250],
    ]);
  });

  it('are 1,000 at most', () => {
    const objects = Array.from({ length: 5 }, (_, index) => many(250, `n-${index}`, index));
    expect(servedServicesOf(objects, OPTIONS)).toHaveLength(1000);
  });
});
