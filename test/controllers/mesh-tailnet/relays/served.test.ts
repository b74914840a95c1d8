import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../../src/api/generated/types.ts';
import { vipServicesIn } from '../../../../src/api/objects/endpoints.ts';
import { placeOf } from '../../../../src/api/objects/oldest.ts';
import { fullServiceName } from '../../../../src/api/served-services.ts';
import type { ServedService } from '../../../../src/api/served-services.ts';
import { servedServicesOf } from '../../../../src/controllers/mesh-tailnet/relays/served.ts';
import { createGuard } from '../../../../src/traffic/address-guard.ts';
import { endpoint } from '../../../support/objects.ts';

const GUARD = createGuard({ allow: [], refuse: ['100.88.0.0/16'], apiServer: [] });

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

/** What is served of objects: each name for the first that lists it, with the states in their statuses. */
function servedOf(objects: readonly Kinds['MeshEndpoints'][], more: Partial<Options> = {}) {
  const states = new Map(
    objects.map(object => [
      placeOf(object),
      new Map(
        (object.status?.vipServices ?? []).map(each => [each.name, { ...each, reason: '', message: '' }]),
      ),
    ]),
  ) as unknown as Options['states'];
  const holders = new Map<string, string>();
  for (const object of objects.toReversed())
    for (const { name } of vipServicesIn(object)) holders.set(fullServiceName(name), placeOf(object));
  const names = {
    holders,
    left: new Map(),
    held: new Map(),
    full: new Set<string>(),
    maxVipServices: 1000,
    addresses: new Set(['100.100.0.1', 'fd7a::1']),
  };
  return servedServicesOf(objects, { guard: GUARD, before: new Map(), states, names, ...more });
}

type Options = Parameters<typeof servedServicesOf>[1];

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
    ['not toward one that is written otherwise', { endpoint: { meshIP: 'fd7a:0::0:1' } }, undefined],
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
    expect(servedOf([offering(fields)])).toEqual(expected === undefined ? [] : [expected]);
  });
});

describe('a VIP service that was served', () => {
  const before = new Map([['svc:shop', { ...SHOP, target: '100.64.0.7:1' } as ServedService]]);
  it.each<[string, Parameters<typeof offering>[0], readonly string[]]>([
    ['goes on where a change of it failed', { state: { status: 'Failed' } }, ['100.64.0.1:8080']],
    ['goes on as it was while its state is not known', { states: [] }, ['100.64.0.7:1']],
    ['ends where another owner has its name', { state: { status: 'Conflict' } }, []],
  ])('%s', (_, fields, targets) => {
    expect(servedOf([offering(fields)], { before }).map(({ target }) => target)).toEqual(targets);
  });

  it('ends once its object has the name no more, whatever its status has', () => {
    const names = {
      holders: new Map([['svc:shop', 'other/shop']]),
      left: new Map(),
      held: new Map(),
      full: new Set<string>(),
      maxVipServices: 1000,
      addresses: new Set<string>(),
    };
    expect(servedOf([offering({})], { before, names })).toEqual([]);
  });
});

function withdrawn(service: Fields): Fields {
  return { ...service, isAdvertised: false };
}

it('a name is served once, for the object that has it', () => {
  const other = offering({ metadata: { name: 'b' }, service: { port: 80 } });
  expect(servedOf([offering({}), other]).map(({ port }) => port)).toEqual([443]);
  expect(servedOf([other, offering({})]).map(({ port }) => port)).toEqual([80]);
});
