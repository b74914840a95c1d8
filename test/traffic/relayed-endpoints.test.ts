import { describe, expect, it } from 'vitest';
import { loadAssignmentOf } from '../../src/traffic/endpoints/load-assignment.ts';
import type { EnvoyEndpoint } from '../../src/traffic/endpoints/load-assignment.ts';
import { endpoint } from '../support/objects.ts';
import { reportedIn, resourcesFrom, ruleOf, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointsObject,
  managedTailnet,
  relaysObject,
  routeObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

const CLUSTER = 'udproute/default/dns/rule/-1';
const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const tailnet = managedTailnet();
const relays = relaysObject('main', { '10.1.0.1': 'ready', '10.1.0.2': 'ready' });

/** A UDP endpoint at 100.64.0.<last>:53. */
function udp(last: number, fields: Fields = {}): Fields {
  return endpoint({ name: `e${last}`, meshIP: `100.64.0.${last}`, port: 53, protocol: 'UDP', ...fields });
}

/** Its entry in status.endpoints. */
function entry(last: number, relayPort: number | undefined, fields: Fields = {}): Fields {
  const address = `100.64.0.${last}:53`;
  const port = relayPort === undefined ? { status: 'Unhealthy' } : { status: 'Healthy', relayPort };
  return { name: `e${last}`, source: 'Static', address, protocol: 'UDP', port: 53, ...port, ...fields };
}

/** A MeshEndpoints with UDP endpoints and their entries in status. */
function dns(endpoints: readonly Fields[], entries: readonly Fields[], name = 'dns', fields: Fields = {}) {
  return endpointsObject(name, endpoints, { status: { endpoints: entries }, ...fields });
}

function route(...names: readonly string[]): object {
  return routeObject(
    'UDPRoute',
    'dns',
    names.map(name => backend(name, { port: 53 })),
  );
}

function traffic(...objects: readonly object[]): Traffic {
  return trafficOf(resourcesFrom(objects), CLUSTER);
}

/** Each endpoint as `priority relay > service *weight`, with its health unless that is HEALTHY. */
function endpointsIn({ through: { Proxy } }: Traffic): readonly string[] {
  return Proxy.assignment.localities.flatMap(({ priority, endpoints }) =>
    endpoints.map(({ health, ...each }) => {
      const text = `p${priority} ${textOf(each)} *${each.weight}`;
      return health === 'HEALTHY' ? text : `${text} ${health}`;
    }),
  );
}

function textOf({ address, port, relayedTo }: Pick<EnvoyEndpoint, 'address' | 'port' | 'relayedTo'>): string {
  return `${address}:${port} > ${relayedTo ? `${relayedTo.address}:${relayedTo.port}` : 'itself'}`;
}

function reasonsIn({ rule, through }: Traffic): readonly (readonly [string, string | undefined])[] {
  return [...rule.unused, ...through.Proxy.unused].map(({ reason, endpoint: name }) => [reason, name]);
}

describe('the endpoints of a UDP rule with data path Proxy', () => {
  const one = dns([udp(1)], [entry(1, 20_001)]);

  it('are the relays, each with the port of the endpoint, and no proxy', () => {
    const found = traffic(tailnet, relays, one, route('dns'));
    expect(found.through.Proxy).toStrictEqual({
      assignment: {
        cluster: CLUSTER,
        localities: [
          {
            backend: 0,
            weight: 1,
            priority: 0,
            endpoints: ['10.1.0.1', '10.1.0.2'].map(address => ({
              address,
              port: 20_001,
              relayedTo: { address: '100.64.0.1', port: 53 },
              weight: 1,
              health: 'HEALTHY',
              healthCheckHost: 'web.example.ts.net',
              isHealthCheckDisabled: false,
            })),
          },
        ],
      },
      unused: [],
    });
    expect(found.through.Direct.assignment.localities).toMatchObject([
      { endpoints: [{ address: '100.64.0.1', port: 53 }] },
    ]);
  });

  it('have their weights on every relay, and their priorities', () => {
    const endpoints = [udp(1, { weight: 3 }), udp(2), udp(3, { priority: 4 })];
    const entries = [entry(1, 20_001), entry(2, 20_002), entry(3, 20_003)];
    expect(endpointsIn(traffic(tailnet, relays, dns(endpoints, entries), route('dns')))).toEqual([
      'p0 10.1.0.1:20001 > 100.64.0.1:53 *3',
      'p0 10.1.0.2:20001 > 100.64.0.1:53 *3',
      'p0 10.1.0.1:20002 > 100.64.0.2:53 *1',
      'p0 10.1.0.2:20002 > 100.64.0.2:53 *1',
      'p1 10.1.0.1:20003 > 100.64.0.3:53 *1',
      'p1 10.1.0.2:20003 > 100.64.0.3:53 *1',
    ]);
  });

  it.each(['terminating', 'unready'] as const)('drain on a mesh pod that is %s', is => {
    const pods = relaysObject('main', { '10.1.0.1': is, '10.1.0.2': 'ready' });
    expect(endpointsIn(traffic(tailnet, pods, one, route('dns')))).toEqual([
      'p0 10.1.0.1:20001 > 100.64.0.1:53 *1 DRAINING',
      'p0 10.1.0.2:20001 > 100.64.0.1:53 *1',
    ]);
  });

  it('are without a draining relay next to other localities, unless all relays drain', () => {
    const two = dns([udp(1), udp(2, { priority: 1 })], [entry(1, 20_001), entry(2, 20_002)]);
    const last = relaysObject('main', { '10.1.0.1': 'terminating', '10.1.0.2': 'ready' });
    expect(endpointsIn(traffic(tailnet, last, two, route('dns')))).toEqual([
      'p0 10.1.0.2:20001 > 100.64.0.1:53 *1',
      'p1 10.1.0.2:20002 > 100.64.0.2:53 *1',
    ]);
    const none = relaysObject('main', { '10.1.0.1': 'terminating' });
    expect(endpointsIn(traffic(tailnet, none, two, route('dns')))).toEqual([
      'p0 10.1.0.1:20001 > 100.64.0.1:53 *1 DRAINING',
      'p1 10.1.0.1:20002 > 100.64.0.2:53 *1 DRAINING',
    ]);
  });

  it('drain while their object is being deleted', () => {
    const going = dns([udp(1)], [entry(1, 20_001)], 'dns', { metadata: DELETED });
    const healths = endpointsIn(traffic(tailnet, relays, going, route('dns')));
    expect(healths.map(text => text.split(' ').at(-1))).toEqual(['DRAINING', 'DRAINING']);
  });

  it('drain beside one outside of the mesh that drains as well', () => {
    const outside = { externalTarget: 'dns.example.com:53' };
    const going = dns(
      [udp(1), udp(2, outside), udp(3, { priority: 1 })],
      [
        entry(1, 20_001),
        entry(2, undefined, { ...outside, resolvedAddresses: ['8.8.8.8'] }),
        entry(3, 20_003),
      ],
      'dns',
      { metadata: DELETED },
    );
    const healths = endpointsIn(traffic(tailnet, relays, going, route('dns')));
    expect(healths.map(text => text.replace(/ \*.*(DRAINING)/, ' $1'))).toEqual([
      'p0 10.1.0.1:20001 > 100.64.0.1:53 DRAINING',
      'p0 10.1.0.2:20001 > 100.64.0.1:53 DRAINING',
      'p0 8.8.8.8:53 > itself DRAINING',
      'p1 10.1.0.1:20003 > 100.64.0.3:53 DRAINING',
      'p1 10.1.0.2:20003 > 100.64.0.3:53 DRAINING',
    ]);
  });

  it.each([
    ['has no status', endpointsObject('dns', [udp(1)])],
    ['has no entry', dns([udp(1)], [])],
    ['has an entry without a port', dns([udp(1)], [entry(1, undefined)])],
    ['has an entry without an address', dns([udp(1)], [entry(1, 20_001, { address: undefined })])],
    ['has an entry of another address', dns([udp(1)], [entry(1, 20_001, { address: '100.64.0.2:53' })])],
    ['has an entry of another port', dns([udp(1)], [entry(1, 20_001, { address: '100.64.0.1:54' })])],
    ['has an entry of another name', dns([udp(1)], [entry(1, 20_001, { name: 'other' })])],
  ])('lack one that %s', (_, object) => {
    const found = traffic(tailnet, relays, object, route('dns'));
    expect(endpointsIn(found)).toEqual([]);
    expect(found.through.Proxy.assignment.localities).toEqual([]);
    expect(reasonsIn(found)).toEqual([['RelayPortMissing', 'e1']]);
    expect(found.through.Direct).toMatchObject({ assignment: { localities: [{}] }, unused: [] });
  });

  it('lack only those without a port, whose error is reported', () => {
    const error = 'all ports from 20000 to 29999 are in use: widen RELAY_PORTS';
    const two = dns([udp(1), udp(2)], [entry(1, undefined, { error }), entry(2, 20_002)]);
    const found = traffic(tailnet, relays, two, route('dns'));
    expect(endpointsIn(found)).toHaveLength(2);
    expect(reportedIn(found.through.Proxy.unused)).toMatchObject([
      { endpoint: 'e1', message: expect.stringContaining(`has no relay port: ${error}`) as string },
    ]);
  });

  it('lack both of two endpoints with one port', () => {
    const two = dns([udp(1), udp(2), udp(3)], [entry(1, 20_001), entry(2, 20_001), entry(3, 20_003)]);
    const found = traffic(tailnet, relays, two, route('dns'));
    expect(reasonsIn(found)).toEqual([
      ['RelayPortMissing', 'e1'],
      ['RelayPortMissing', 'e2'],
    ]);
    expect(endpointsIn(found)).toEqual([
      'p0 10.1.0.1:20003 > 100.64.0.3:53 *1',
      'p0 10.1.0.2:20003 > 100.64.0.3:53 *1',
    ]);
  });

  it('are found by another spelling of an IPv6 address', () => {
    const six = udp(6, { meshIP: 'fd7a:115c:a1e0:0::6' });
    const found = dns([six], [entry(6, 20_006, { address: '[fd7a:115c:a1e0::6]:53' })]);
    expect(endpointsIn(traffic(tailnet, relays, found, route('dns')))[0]).toContain('10.1.0.1:20006');
  });

  it.each<readonly [string, readonly object[], string]>([
    ['an External pool', [tailnetObject(), relays], 'DatagramsThroughProxy'],
    ['a pool without an address', [tailnetObject('main', { pool: {} }), relays], 'ProxyUnknown'],
    ['a deletion under way', [managedTailnet('main', { metadata: DELETED }), relays], 'ProxyUnknown'],
    ['no relay', [tailnet], 'ProxyUnknown'],
    [
      'a relay of another MeshTailnet',
      [tailnet, relaysObject('other', { '10.2.0.1': 'ready' })],
      'ProxyUnknown',
    ],
    [
      'a relay in another namespace',
      [tailnet, relaysObject('main', { '10.9.0.1': 'ready' }, 'default')],
      'ProxyUnknown',
    ],
    ['no MeshTailnet any more', [relays], 'TailnetNotFound'],
  ])('are withheld with %s', (_, objects, reason) => {
    const found = traffic(...objects, one, route('dns'));
    expect(endpointsIn(found)).toEqual([]);
    expect(reasonsIn(found)).toEqual([[reason, undefined]]);
  });

  it('count as found where EndpointSlices are not read', () => {
    const resources = { ...resourcesFrom([tailnet, one, route('dns')]), relays: () => undefined };
    const rule = ruleOf(resources, CLUSTER);
    const { settings } = trafficOf(resources, CLUSTER);
    if (!rule || !settings) return expect.fail('the cluster is not resolved');
    const { assignment, unused } = loadAssignmentOf(rule, settings, 'Proxy', resources);
    expect([assignment.localities, unused]).toEqual([[], []]);
  });
});

describe('UDP in two tailnets', () => {
  const other = { tailnet: 'other.ts.net' };
  const second = managedTailnet('second', other);
  const pods = relaysObject('second', { '10.2.0.1': 'ready' });
  const first = dns([udp(1)], [entry(1, 20_001)]);

  it('uses the relays of each, which may have the same port', () => {
    const there = dns([udp(2)], [entry(2, 20_001)], 'there', other);
    const found = traffic(tailnet, second, relays, pods, first, there, route('dns', 'there'));
    expect(endpointsIn(found)).toEqual([
      'p0 10.1.0.1:20001 > 100.64.0.1:53 *1',
      'p0 10.1.0.2:20001 > 100.64.0.1:53 *1',
      'p0 10.2.0.1:20001 > 100.64.0.2:53 *1',
    ]);
  });

  it('with one address uses neither in one rule, and each in a rule of its own', () => {
    const there = dns([udp(1)], [entry(1, 20_009)], 'there', other);
    const objects = [tailnet, second, relays, pods, first, there];
    expect(endpointsIn(traffic(...objects, route('dns', 'there')))).toEqual([]);
    expect(endpointsIn(traffic(...objects, route('there')))).toEqual([
      'p0 10.2.0.1:20009 > 100.64.0.1:53 *1',
    ]);
  });

  it('of which one has an External pool uses the other', () => {
    const external = tailnetObject('second', other);
    const there = dns([udp(2)], [entry(2, 20_002)], 'there', other);
    const found = traffic(tailnet, external, relays, pods, first, there, route('there', 'dns'));
    expect(endpointsIn(found)).toHaveLength(2);
    expect(reasonsIn(found)).toEqual([['DatagramsThroughProxy', undefined]]);
  });
});
