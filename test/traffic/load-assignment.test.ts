import { describe, expect, it } from 'vitest';
import { endpoint } from '../support/objects.ts';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointList,
  endpointsObject,
  httpRoute,
  routeObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

/** An object for each list of endpoints; all are backends of one rule, with these weights. */
function split(objects: readonly (readonly Fields[])[], weights: readonly number[] = []) {
  const names = objects.map((_, at) => `o${at}`);
  const backends = names.map((name, at) => backend(name, { weight: weights[at] ?? 1 }));
  return trafficOf(
    resourcesFrom([
      tailnetObject(),
      ...objects.map((endpoints, at) => endpointsObject(`o${at}`, endpoints)),
      httpRoute('web', backends),
    ]),
  );
}

const at = (last: number, fields: Fields = {}) =>
  endpoint({ name: `e${last}`, meshIP: `100.64.0.${last}`, ...fields });

/** Backend, weight, priority, and the endpoints with their weights. */
function levelsOf({ through }: Traffic): readonly string[] {
  return through.Direct.assignment.localities.map(({ backend, weight, priority, endpoints }) => {
    const each = endpoints.map(one => `${one.address}:${one.port}*${one.weight}`);
    return `${backend} *${weight} p${priority} ${each.join(' ')}`;
  });
}

describe('a load assignment', () => {
  it('has exactly the fields that Envoy settings', () => {
    const { through } = split([[at(1, { weight: 7 })]]);
    const endpoint = {
      address: '100.64.0.1',
      port: 8080,
      weight: 7,
      health: 'HEALTHY',
      healthCheckHost: 'web.example.ts.net',
      isHealthCheckDisabled: false,
      socketMatch: 'clear',
    };
    const assignment = (each: object) => ({
      assignment: {
        cluster: 'httproute/default/web/rule/0',
        localities: [{ backend: 0, weight: 1, priority: 0, endpoints: [each] }],
      },
      unused: [],
    });
    expect(through.Direct).toStrictEqual(assignment(endpoint));
    expect(through.Proxy).toStrictEqual(
      assignment({ ...endpoint, proxy: { address: '10.0.0.9', port: 1055 } }),
    );
  });

  it('has the weights of backends and endpoints', () => {
    const traffic = split([[at(1, { weight: 3 }), at(2)], [at(3, { weight: 100 })], [at(4)]], [90, 10, 0]);
    expect(levelsOf(traffic)).toEqual([
      '0 *90 p0 100.64.0.1:8080*3 100.64.0.2:8080*1',
      '1 *10 p0 100.64.0.3:8080*100',
    ]);
  });

  it('numbers priorities without gaps over all backends', () => {
    const traffic = split([
      [at(1, { priority: 9 }), at(2, { priority: 2 })],
      [at(3, { priority: 5 })],
      [at(4, { priority: 2 })],
    ]);
    expect(levelsOf(traffic)).toEqual([
      '0 *1 p0 100.64.0.2:8080*1',
      '0 *1 p2 100.64.0.1:8080*1',
      '1 *1 p1 100.64.0.3:8080*1',
      '2 *1 p0 100.64.0.4:8080*1',
    ]);
  });

  it('has no locality for a backend without endpoints', () => {
    expect(
      levelsOf(split([[], [at(1)]].map(list => (list.length ? list : [at(9, { protocol: 'UDP' })])))),
    ).toEqual(['1 *1 p0 100.64.0.1:8080*1']);
  });

  it('has IPv6 addresses', () => {
    const { through } = split([[at(1, { meshIP: 'fd7a:115c:a1e0::1' })]]);
    expect(through.Direct.assignment.localities[0]?.endpoints[0]).toMatchObject({
      address: 'fd7a:115c:a1e0::1',
      port: 8080,
    });
  });
});

describe('the proxy of an endpoint', () => {
  const through = (tailnet: object, endpoints: readonly Fields[] = [at(1)]) =>
    trafficOf(resourcesFrom([tailnet, endpointsObject('web', endpoints), httpRoute('web', [backend('web')])]))
      .through;
  const external = (...addresses: readonly string[]) =>
    tailnetObject('main', { pool: { mode: 'External', addresses } });
  const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const managed = (proxyAddress?: string, metadata: Fields = {}) => {
    const pool = proxyAddress === undefined ? {} : { proxyAddress };
    return tailnetObject('main', { pool: {}, metadata, status: { pool } });
  };

  it.each([
    ['of others', external('10.0.0.9:1055'), { address: '10.0.0.9', port: 1055 }],
    ['of others, by IPv6', external('[fd00::9]:1055'), { address: 'fd00::9', port: 1055 }],
    [
      'of others, passing over a name',
      external('proxy.example.com:1055', '10.0.0.9:1'),
      { address: '10.0.0.9', port: 1 },
    ],
    ['of mesh pods', managed('10.96.0.7:1055'), { address: '10.96.0.7', port: 1055 }],
    ['of mesh pods, at the last port', managed('10.96.0.7:65535'), { address: '10.96.0.7', port: 65_535 }],
    ['of mesh pods, by IPv6', managed('[fd00::7]:1055'), { address: 'fd00::7', port: 1055 }],
  ])('is one of those %s', (_, tailnet, proxy) => {
    expect(through(tailnet).Proxy).toMatchObject({
      unused: [],
      assignment: { localities: [{ endpoints: [{ proxy }] }] },
    });
  });

  it.each([
    ['no status', tailnetObject('main', { pool: {} }), 'ProxyUnknown'],
    ['no address in the status', managed(), 'ProxyUnknown'],
    ['a deletion of mesh pods under way', managed('10.96.0.7:1055', DELETED), 'ProxyUnknown'],
    ['a deletion under way', tailnetObject('main', { metadata: DELETED }), 'ProxyUnknown'],
    ['an empty address in the status', managed(''), 'ProxyUnknown'],
    ['a name', external('proxy.example.com:1055'), 'ProxyNotAnAddress'],
    ['a name of numbers', external('10.0.0:1055'), 'ProxyNotAnAddress'],
    ['an address out of range', external('10.0.0.256:1055'), 'ProxyNotAnAddress'],
    ['a wrong IPv6 address', external('[1::2::3]:1055'), 'ProxyNotAnAddress'],
    ['an IPv4 address in brackets', external('[1.2.3.4]:1055'), 'ProxyNotAnAddress'],
    ['a name in the status', managed('meshd-main.mesh-system.svc:1055'), 'ProxyNotAnAddress'],
    ['no port in the status', managed('10.0.0.1'), 'ProxyNotAnAddress'],
    ['port 0 in the status', managed('10.0.0.1:0'), 'ProxyNotAnAddress'],
    ['a port out of range in the status', managed('10.0.0.1:65536'), 'ProxyNotAnAddress'],
    ['IPv6 without brackets in the status', managed('fd00::7:1055'), 'ProxyNotAnAddress'],
  ])('is missing with %s, and the endpoint is withheld', (_, tailnet, reason) => {
    const { Proxy, Direct } = through(tailnet);
    expect(Proxy).toMatchObject({
      assignment: { localities: [] },
      unused: [{ reason, object: 'MeshEndpoints/default/web' }],
    });
    expect(Direct).toMatchObject({ assignment: { localities: [{}] }, unused: [] });
  });

  it('is missing for UDP', () => {
    const web = endpointsObject('web', [at(1, { protocol: 'UDP' })]);
    const resources = resourcesFrom([tailnetObject(), web, routeObject('UDPRoute', 'web', [backend('web')])]);
    const { settings, through } = trafficOf(resources, 'udproute/default/web/rule/-1');
    expect(settings).not.toHaveProperty('socket');
    expect(through.Proxy).toMatchObject({
      assignment: { localities: [] },
      unused: [{ reason: 'DatagramsThroughProxy' }],
    });
    expect(through.Direct.assignment.localities[0]?.endpoints).toMatchObject([{ address: '100.64.0.1' }]);
    expect(through.Direct.assignment.localities[0]?.endpoints[0]).not.toHaveProperty('proxy');
  });

  it('is reported missing once per backend, and priorities have no gap', () => {
    const other = endpointsObject('other', endpointList(5), { tailnet: 'other.ts.net' });
    const objects = [
      tailnetObject(),
      tailnetObject('second', { tailnet: 'other.ts.net', pool: {} }),
      endpointsObject('web', [at(99, { priority: 3 })]),
      other,
      httpRoute('web', [backend('other'), backend('web')]),
    ];
    const { Proxy } = trafficOf(resourcesFrom(objects)).through;
    expect(Proxy.unused).toMatchObject([{ reason: 'ProxyUnknown', object: 'MeshEndpoints/default/other' }]);
    expect(Proxy.assignment.localities).toMatchObject([{ backend: 1, priority: 0 }]);
  });

  describe('of several', () => {
    const all = ['10.0.0.1:1055', '10.0.0.2:1055', '10.0.0.3:1055', '10.0.0.4:1055'];
    const endpoints = endpointList(400);
    const proxies = (addresses: readonly string[]) =>
      through(external(...addresses), endpoints).Proxy.assignment.localities.flatMap(({ endpoints }) =>
        endpoints.map(({ proxy }) => `${proxy?.address}:${proxy?.port}`),
      );

    it('is spread evenly', () => {
      const used = proxies(all);
      for (const proxy of all) {
        const share = used.filter(each => each === proxy).length;
        expect(share).toBeGreaterThan(60);
        expect(share).toBeLessThan(140);
      }
    });

    it('does not depend on their order', () => {
      expect(proxies([...all].reverse())).toEqual(proxies(all));
    });

    it('changes only where it was the removed one', () => {
      const [before, after] = [proxies(all), proxies(all.slice(1))];
      const moved = before.flatMap((proxy, at) => (proxy === after[at] ? [] : [proxy]));
      expect(new Set(moved)).toEqual(new Set([all[0]]));
    });
  });
});
