import { describe, expect, it } from 'vitest';
import { endpoint } from '../support/objects.ts';
import { CERTIFICATE as CA, OTHER_CERTIFICATE as OTHER_CA } from '../support/traffic/certificates.ts';
import { reportedIn, resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointList,
  endpointsObject,
  httpRoute,
  routeObject,
  service,
  serviceObject,
  sliceObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Endpoints `e1`, `e2` ... of protocol HTTPS, each with these fields. */
function secure(...each: readonly Fields[]): readonly Fields[] {
  return endpointList(each.length, { protocol: 'HTTPS' }).map((one, at) => ({ ...one, ...each[at] }));
}

function traffic(endpoints: readonly Fields[], others: readonly Fields[] = []): Traffic {
  const route = httpRoute('web', [backend('web'), ...others]);
  return trafficOf(resourcesFrom([tailnetObject(), endpointsObject('web', endpoints), route]));
}

function assignedIn({ through }: Traffic) {
  return through.Proxy.assignment.localities.flatMap(({ endpoints }) => endpoints);
}

describe('the TLS settings of an endpoint', () => {
  const plain = { insecureSkipVerify: false, alpn: 'http/1.1' };
  const itself = { is: 'per-endpoint' };
  const fixed = (name: string) => ({ is: 'fixed', name });

  it.each<readonly [string, Fields, Fields]>([
    ['without tls verify its own name', {}, { serverName: itself }],
    ['with empty tls verify its own name', { tls: {} }, { serverName: itself }],
    ['with its own name', { tls: { serverName: 'e1.example.ts.net' } }, { serverName: itself }],
    [
      'with the name of another in the tailnet',
      { tls: { serverName: 'e2.example.ts.net' } },
      { serverName: fixed('e2.example.ts.net') },
    ],
    [
      'with a name outside of the tailnet',
      { tls: { serverName: 'shop.example.com' } },
      { serverName: fixed('shop.example.com') },
    ],
    [
      'whose own name is outside of the tailnet',
      { meshFQDN: 'e1.example.com' },
      { serverName: fixed('e1.example.com') },
    ],
    [
      'whose name ends with the domain of the tailnet but is not in it',
      { meshFQDN: 'e1.an-example.ts.net' },
      { serverName: fixed('e1.an-example.ts.net') },
    ],
    [
      'whose own name is the tailnet',
      { meshFQDN: 'example.ts.net' },
      { serverName: fixed('example.ts.net') },
    ],
    ['with a CA', { tls: { ca: CA } }, { serverName: fixed('e1.example.ts.net'), ca: CA }],
    [
      'with a minimum version',
      { tls: { minVersion: '1.3' } },
      { serverName: fixed('e1.example.ts.net'), minVersion: '1.3' },
    ],
    [
      'without verification',
      { tls: { insecureSkipVerify: true } },
      { serverName: fixed('e1.example.ts.net'), insecureSkipVerify: true },
    ],
    [
      'without verification ignore the CA',
      { tls: { insecureSkipVerify: true, ca: CA } },
      { serverName: fixed('e1.example.ts.net'), insecureSkipVerify: true },
    ],
  ])('%s', (_, fields, tls) => {
    const { settings } = traffic(secure(fields));
    expect(settings?.socketMatches.map(({ socket }) => socket)).toStrictEqual([
      { is: 'tls', tls: { ...plain, ...tls } },
    ]);
  });

  it('set a hostname only where the server name is its own', () => {
    const names = (...each: readonly Fields[]) =>
      assignedIn(traffic(secure(...each))).map(({ hostname }) => hostname);
    expect(names({}, {})).toEqual(['e1.example.ts.net', 'e2.example.ts.net']);
    expect(names({ tls: { serverName: 'shop.example.com' } })).toEqual([undefined]);
    expect(names({ tls: { ca: CA } }, {})).toEqual([undefined, 'e2.example.ts.net']);
    expect(assignedIn(traffic(endpointList(1))).map(({ hostname }) => hostname)).toEqual([undefined]);
  });
});

describe('the transport sockets of a cluster', () => {
  const shop = { tls: { serverName: 'shop.example.com' } };

  it.each<readonly [string, readonly Fields[], number]>([
    ['no usable endpoint', [endpoint({ protocol: 'UDP' })], 1],
    ['no endpoint with TLS', endpointList(2), 1],
    ['equal TLS settings', secure({}, {}, {}), 1],
    ['equal TLS settings with one name', secure(shop, shop), 1],
    ['different TLS settings', secure({}, shop, { tls: { ca: CA } }, shop, { tls: { ca: OTHER_CA } }, {}), 4],
  ])('close connections that select none, with %s', (_, endpoints, count) => {
    const all = traffic(endpoints);
    expect(all.settings?.defaultSocket).toEqual({ is: 'closed' });
    const names = all.settings?.socketMatches.map(({ name }) => name) ?? [];
    expect(names).toHaveLength(count);
    expect(names).toEqual([...names].sort());
    expect(names.every(name => name === 'clear' || /^[0-9a-f]{16}$/.test(name))).toBe(true);
    const used = assignedIn(all).map(({ socketMatch }) => socketMatch);
    if (used.length > 0) expect(new Set(used)).toEqual(new Set(names));
  });

  it.each<readonly [string, readonly Fields[], readonly Fields[]]>([
    ['TLS for a first endpoint', [endpoint({ protocol: 'UDP' })], secure({})],
    ['TLS after clear text', endpointList(1), secure({})],
    ['verification after insecureSkipVerify', secure({ tls: { insecureSkipVerify: true } }), secure({})],
    ['another CA', secure({ tls: { ca: CA } }), secure({ tls: { ca: OTHER_CA } })],
    ['clear text after TLS', secure({}), endpointList(1)],
  ])('do not include %s before the cluster is translated', (_, before, after) => {
    const early = traffic(before).settings;
    const [endpointAfter] = assignedIn(traffic(after));
    expect(endpointAfter?.socketMatch).toBeDefined();
    expect(early?.socketMatches.some(({ name }) => name === endpointAfter?.socketMatch)).toBe(false);
    expect(early?.defaultSocket).toEqual({ is: 'closed' });
  });

  it.each<readonly [string, readonly Fields[], readonly Fields[]]>([
    ['a Service', endpointList(1), [service()]],
    ['a Service beside TLS', secure({}), [service()]],
    ['MeshEndpoints with TLS', endpointList(1), [backend('secure')]],
    ['MeshEndpoints with other TLS', secure({}), [backend('secure')]],
  ])(
    'include those of a backend of weight 0, so that a weight changes endpoints alone: %s',
    (_, first, others) => {
      const objects = [
        ...[tailnetObject(), endpointsObject('web', first)],
        endpointsObject('secure', [{ ...endpoint({ protocol: 'HTTPS', meshIP: '100.64.9.9' }), ...shop }]),
        ...[serviceObject('shop'), sliceObject('shop', [{ addresses: ['10.0.0.1'] }])],
      ];
      const withWeight = (weight: number) => {
        const refs = others.map(each => ({ ...each, weight }));
        return trafficOf(resourcesFrom([...objects, httpRoute('web', [backend('web'), ...refs])]));
      };
      const { settings } = withWeight(0);
      const used = assignedIn(withWeight(10)).map(({ socketMatch }) => socketMatch);
      expect(settings?.socketMatches.map(({ name }) => name)).toEqual(expect.arrayContaining(used));
      expect(new Set(used).size).toBe(2);
      expect(assignedIn(withWeight(0)).map(({ address }) => address)).toEqual(['100.64.0.1']);
    },
  );

  it('set different TLS settings for each endpoint', () => {
    const all = traffic(secure(shop, {}));
    const settings = assignedIn(all).map(({ socketMatch }) => {
      const match = all.settings?.socketMatches.find(({ name }) => name === socketMatch);
      return match?.socket.is === 'tls' ? match.socket.tls.serverName : undefined;
    });
    expect(settings).toEqual([{ is: 'fixed', name: 'shop.example.com' }, { is: 'per-endpoint' }]);
  });

  it('include clear where other endpoints have TLS', () => {
    const clear = endpoint({ name: 'clear', meshIP: '100.64.9.9' });
    const all = traffic([...secure({}), clear]);
    expect(all.settings).toMatchObject({
      defaultSocket: { is: 'closed' },
      socketMatches: [{ socket: { is: 'tls' } }, { name: 'clear', socket: { is: 'clear' } }],
    });
    expect(assignedIn(all)[1]?.socketMatch).toBe('clear');
    expect(assignedIn(all)[0]?.socketMatch).toBe(all.settings?.socketMatches[0]?.name);
  });

  it('are the same in a mixed rule, beside those of the other backends', () => {
    const clear = endpoint({ name: 'clear', meshIP: '100.64.9.9' });
    const [alone, mixed] = [[], [service()]].map(others => traffic([...secure({}), clear], others));
    expect(mixed?.settings?.defaultSocket).toEqual({ is: 'closed' });
    expect(mixed?.settings?.socketMatches).toEqual(alone?.settings?.socketMatches);
    expect(mixed?.settings?.otherSockets).toEqual([
      { name: 'Service/default/shop:80', envoyGatewayName: 'httproute/default/web/rule/0/tls/1' },
    ]);
  });

  it('include at most 64 TLS settings, the first of the rule', () => {
    const named = (at: number) => ({ tls: { serverName: `s${at}.example.com` } });
    const all = traffic([
      ...secure(...Array.from({ length: 66 }, (_, at) => named(at)), named(3)),
      endpoint({ name: 'clear', meshIP: '100.64.9.9' }),
    ]);
    expect(all.settings?.socketMatches).toHaveLength(65);
    expect(assignedIn(all)).toHaveLength(66);
    expect(all.rule.unused.map(({ reason, endpoint }) => [reason, endpoint])).toEqual([
      ['TooManyTlsSettings', 'e65'],
      ['TooManyTlsSettings', 'e66'],
    ]);
    expect(reportedIn(all.rule.unused)[0]?.message).toContain('more than 64 different TLS settings');
  });

  it('include at most 256 KB of TLS settings, certificates included', () => {
    const big = CA.repeat(Math.floor(32_768 / CA.length));
    const all = traffic(secure(...Array.from({ length: 12 }, () => ({ tls: { ca: big } })), {}));
    const bytes = JSON.stringify(all.settings).length;
    expect(bytes).toBeGreaterThan(200 * 1024);
    expect(bytes).toBeLessThan(280 * 1024);
    const used = assignedIn(all).length;
    expect(all.rule.unused.map(({ reason }) => reason)).toEqual(
      Array.from({ length: 13 - used }, () => 'TooManyTlsSettings'),
    );
    expect(reportedIn(all.rule.unused)[0]?.message).toContain('256 KB');
    expect(assignedIn(all).at(-1)).toMatchObject({ hostname: 'e13.example.ts.net' });
  });

  it('read at most 256 KB of certificates', () => {
    const written = Array.from({ length: 10 }, (_, at) => `${`# ${at} `.padEnd(30_000, '.')}\n${CA}`);
    const all = traffic(secure(...[...written, written[0]].map(ca => ({ tls: { ca } }))));
    expect(all.rule.unused.map(({ reason, endpoint }) => [reason, endpoint])).toEqual([
      ['TooManyTlsSettings', 'e9'],
      ['TooManyTlsSettings', 'e10'],
    ]);
    expect(JSON.stringify(all.settings).length).toBeLessThan(16 * 1024);
  });

  it('have names that depend on their settings alone', () => {
    const [one, other] = [traffic(secure({}, shop)), traffic(secure(shop, { tls: { ca: CA } }, {}))];
    const shared = new Set(one.settings?.socketMatches.map(({ name }) => name));
    expect(other.settings?.socketMatches.filter(({ name }) => shared.has(name))).toHaveLength(2);
  });

  it('offer ALPN h2 for gRPC, and none for TCP', () => {
    const of = (protocol: string, kind: 'GRPCRoute' | 'TCPRoute', cluster: string) => {
      const web = endpointsObject('web', [endpoint({ protocol, tls: {} })]);
      const route = routeObject(kind, 'web', [backend('web')]);
      const { settings } = trafficOf(resourcesFrom([tailnetObject(), web, route]), cluster);
      const [match] = settings?.socketMatches ?? [];
      return match?.socket.is === 'tls' ? match.socket.tls.alpn : 'no TLS';
    };
    expect(of('gRPC', 'GRPCRoute', 'grpcroute/default/web/rule/0')).toBe('h2');
    expect(of('HTTPS', 'GRPCRoute', 'grpcroute/default/web/rule/0')).toBe('h2');
    expect(of('TLS', 'TCPRoute', 'tcproute/default/web/rule/-1')).toBeUndefined();
  });
});
