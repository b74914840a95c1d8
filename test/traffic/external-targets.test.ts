import { describe, expect, it } from 'vitest';
import { createGuard } from '../../src/traffic/address-guard.ts';
import { endpoint } from '../support/objects.ts';
import { reportedIn, resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import type { Traffic } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointsObject,
  httpRoute,
  routeObject,
  tailnetObject,
} from '../support/traffic/objects.ts';

type Fields = Readonly<Record<string, unknown>>;

const TARGET = 'db.example.com:5432';

const guard = createGuard({ allow: [], refuse: ['100.88.0.0/16'], apiServer: ['10.96.0.1'] });

/** An endpoint with externalTarget, and its entry in status.endpoints. */
type Target = { readonly fields?: Fields; readonly entry?: Fields };

function objectOf(targets: readonly Target[], name = 'web', metadata: Fields = {}) {
  const endpoints = targets.map(({ fields }, at) =>
    endpoint({ name: `e${at}`, meshIP: `100.64.0.${at + 1}`, externalTarget: TARGET, ...fields }),
  );
  const entries = targets.flatMap(({ entry }, at) =>
    entry ? [{ name: `e${at}`, status: 'Healthy', externalTarget: TARGET, ...entry }] : [],
  );
  return endpointsObject(name, endpoints, { metadata, status: { endpoints: entries } });
}

function traffic(targets: readonly Target[], tailnet: object = tailnetObject()): Traffic {
  const route = httpRoute('web', [backend('web')]);
  return trafficOf(resourcesFrom([tailnet, objectOf(targets), route]));
}

const resolvedTo = (...resolvedAddresses: readonly string[]) => ({ entry: { resolvedAddresses } });
const inMesh = { fields: { externalTarget: undefined } };

/** The addresses with ports and weights of all localities. */
function placesOf({ assignment }: Traffic['through']['Proxy']): readonly string[] {
  return assignment.localities.flatMap(({ endpoints }) =>
    endpoints.map(
      ({ address, port, weight, proxy }) => `${address} ${port} *${weight}${proxy ? ' proxy' : ''}`,
    ),
  );
}

describe('an endpoint with externalTarget', () => {
  it('is its resolved addresses and its port, without a proxy, with either data path', () => {
    const { through, rule } = traffic([resolvedTo('1.1.1.1', '2606:4700::1')]);
    expect(rule.unused).toEqual([]);
    for (const path of [through.Proxy, through.Direct]) {
      expect(placesOf(path)).toEqual(['1.1.1.1 5432 *1', '2606:4700::1 5432 *1']);
      expect(path.unused).toEqual([]);
    }
    expect(through.Proxy.assignment.localities[0]?.endpoints[0]).toMatchObject({
      externalTarget: TARGET,
      healthCheckHost: 'web.example.ts.net',
      socketMatch: 'clear',
    });
  });

  it('needs no pool', () => {
    const { through } = traffic([resolvedTo('1.1.1.1'), inMesh], tailnetObject('main', { pool: {} }));
    expect(placesOf(through.Proxy)).toEqual(['1.1.1.1 5432 *1']);
    expect(through.Proxy.unused).toMatchObject([{ reason: 'ProxyUnknown' }]);
    const alone = traffic([resolvedTo('1.1.1.1')], tailnetObject('main', { pool: {} }));
    expect(alone.through.Proxy.unused).toEqual([]);
  });

  it('shares its weight among its addresses', () => {
    const weighted = (weight: number, { entry }: Target) => ({ fields: { weight }, ...(entry && { entry }) });
    const { through } = traffic([
      weighted(3, resolvedTo('1.1.1.1', '1.1.1.2', '1.1.1.3')),
      { fields: { weight: 2, externalTarget: undefined } },
    ]);
    expect(placesOf(through.Proxy)).toEqual([
      '1.1.1.1 5432 *720',
      '1.1.1.2 5432 *720',
      '1.1.1.3 5432 *720',
      '100.64.0.2 8080 *1440 proxy',
    ]);
  });

  it.each<readonly [string, Target, string]>([
    ['without an entry', {}, 'the operator has not resolved it yet'],
    ['with an entry without addresses', { entry: { error: 'no such name' } }, 'no such name'],
    ['with no valid address', resolvedTo('1.2.3', 'localhost', '::ffff:1.1.1.1'), 'has not resolved it yet'],
    [
      'with addresses of an earlier externalTarget',
      { entry: { resolvedAddresses: ['1.1.1.1'], externalTarget: 'db.example.com:5433' } },
      'the operator has not resolved it yet',
    ],
  ])('is reported %s', (_, target, why) => {
    const { through } = traffic([target]);
    expect(placesOf(through.Proxy)).toEqual([]);
    expect(reportedIn(through.Proxy.unused)).toMatchObject([
      {
        reason: 'ExternalTargetNotResolved',
        endpoint: 'e0',
        message: expect.stringContaining(why) as string,
      },
    ]);
    expect(through.Direct.unused).toEqual(through.Proxy.unused);
  });

  it.each([
    ['127.0.0.1', 'a loopback address'],
    ['169.254.169.254', 'a link-local address'],
    ['fe80::1', 'a link-local address'],
    ['10.96.0.1', 'an address of the API server'],
    ['64:ff9b::a60:1', 'an address of the API server'],
    ['100.88.0.9', 'in 100.88.0.0/16 of REFUSED_ADDRESSES'],
    ['10.244.1.7', 'not public'],
    ['100.64.0.9', 'not public'],
  ])('gets no traffic at %s, whoever has written it into the status', (address, what) => {
    const objects = [
      tailnetObject(),
      objectOf([resolvedTo('1.1.1.1', address)]),
      httpRoute('web', [backend('web')]),
    ];
    const { through } = trafficOf(resourcesFrom(objects, guard));
    for (const path of [through.Proxy, through.Direct]) {
      expect(placesOf(path)).toEqual([]);
      const named = `externalTarget: ${address}, an address of db.example.com, is ${what}`;
      expect(reportedIn(path.unused)).toMatchObject([
        { reason: 'AddressRefused', endpoint: 'e0', message: expect.stringContaining(named) as string },
      ]);
    }
  });

  it('may be private where the configuration allows its host or address', () => {
    for (const allow of [['DB.example.com'], ['10.244.0.0/16']]) {
      const allowing = createGuard({ allow, refuse: [], apiServer: [] });
      const objects = [
        tailnetObject(),
        objectOf([resolvedTo('10.244.1.7')]),
        httpRoute('web', [backend('web')]),
      ];
      const { through } = trafficOf(resourcesFrom(objects, allowing));
      expect(placesOf(through.Proxy)).toEqual(['10.244.1.7 5432 *1']);
    }
  });

  it('gets no traffic at addresses in the status of an endpoint that has no externalTarget', () => {
    const { through } = traffic([{ ...inMesh, ...resolvedTo('1.1.1.1') }]);
    expect(placesOf(through.Direct)).toEqual(['100.64.0.1 8080 *1']);
  });

  it('is used once in a rule, and other ports of its host are other targets', () => {
    const other = 'DB.example.com:5433';
    const { through, rule } = traffic([
      resolvedTo('1.1.1.1'),
      { ...resolvedTo('1.1.1.1'), fields: { externalTarget: 'DB.example.com:5432' } },
      {
        fields: { externalTarget: other },
        entry: { externalTarget: other, resolvedAddresses: ['1.1.1.1'] },
      },
    ]);
    expect(reportedIn(rule.unused)).toMatchObject([
      {
        reason: 'DuplicateAddress',
        endpoint: 'e1',
        message:
          'spec.rules[0].backendRefs[0]: endpoint e1 of MeshEndpoints default/web has the same externalTarget as endpoint e0 of MeshEndpoints default/web, which is used: remove one of them',
      },
    ]);
    expect(placesOf(through.Proxy)).toEqual(['1.1.1.1 5432 *1', '1.1.1.1 5433 *1']);
  });

  it('does not use addresses of another one, and is reported if it has no others', () => {
    const named = (host: string, ...resolvedAddresses: readonly string[]) => {
      const externalTarget = `${host}.example.com:443`;
      return { fields: { externalTarget }, entry: { externalTarget, resolvedAddresses } };
    };
    const { through } = traffic([
      named('a', '1.1.1.1', '1.1.1.2'),
      named('b', '1.1.1.2', '1.1.1.3'),
      named('c', '1.1.1.1', '1.1.1.3'),
    ]);
    expect(placesOf(through.Proxy)).toEqual(['1.1.1.1 443 *360', '1.1.1.2 443 *360', '1.1.1.3 443 *720']);
    expect(reportedIn(through.Proxy.unused)).toMatchObject([
      {
        reason: 'DuplicateAddress',
        endpoint: 'e2',
        message:
          'spec.rules[0].backendRefs[0]: externalTarget c.example.com:443 of endpoint e2 of MeshEndpoints default/web has only addresses of endpoint e0, which is used, and Envoy keeps one endpoint per address: remove one of them',
      },
    ]);
  });

  it('has meshIP and port of another endpoint without being its duplicate', () => {
    const { rule, through } = traffic([
      resolvedTo('1.1.1.1'),
      { fields: { ...inMesh.fields, meshIP: '100.64.0.1' } },
    ]);
    expect(rule.unused).toEqual([]);
    expect(placesOf(through.Direct)).toEqual(['1.1.1.1 5432 *1', '100.64.0.1 8080 *1']);
  });

  it('of a deleted object leaves its addresses to others', () => {
    const metadata = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x'] };
    const http = 'b.example.com:5432';
    const objects = [
      tailnetObject(),
      objectOf([resolvedTo('1.1.1.1', '1.1.1.2')], 'going', metadata),
      objectOf(
        [
          {
            fields: { externalTarget: http },
            entry: { externalTarget: http, resolvedAddresses: ['1.1.1.1'] },
          },
        ],
        'staying',
      ),
      httpRoute('web', [backend('going'), backend('staying')]),
    ];
    const { localities } = trafficOf(resourcesFrom(objects)).through.Proxy.assignment;
    const shown = localities.flatMap(({ endpoints }) =>
      endpoints.map(({ address, health }) => [address, health]),
    );
    expect(shown).toEqual([
      ['1.1.1.2', 'DRAINING'],
      ['1.1.1.1', 'HEALTHY'],
    ]);
  });

  it('of UDP gets datagrams directly, without relays', () => {
    const fields = { protocol: 'UDP', externalTarget: 'dns.example.com:53' };
    const target = {
      fields,
      entry: { ...resolvedTo('9.9.9.9').entry, externalTarget: 'dns.example.com:53' },
    };
    for (const pool of [{}, { mode: 'External', addresses: ['10.0.0.9:1055'] }]) {
      const route = routeObject('UDPRoute', 'web', [backend('web')]);
      const resources = resourcesFrom([tailnetObject('main', { pool }), objectOf([target]), route]);
      const { through } = trafficOf(resources, 'udproute/default/web/rule/-1');
      expect(placesOf(through.Proxy)).toEqual(['9.9.9.9 53 *1']);
      expect(through.Proxy.unused).toEqual([]);
    }
  });

  it('originates TLS as other endpoints do, and may share its server name with one', () => {
    const tls = { protocol: 'HTTPS', port: 443 };
    const { settings, rule } = trafficOf(
      resourcesFrom([
        tailnetObject(),
        objectOf([
          { ...resolvedTo('1.1.1.1'), fields: tls },
          { fields: { ...tls, externalTarget: undefined } },
          {
            ...resolvedTo('1.1.1.1'),
            fields: { ...tls, tls: { serverName: 'db.example.com' }, externalTarget: 'a.b:1' },
          },
        ]),
        httpRoute('web', [backend('web', { port: 443 })]),
      ]),
    );
    expect(rule.unused).toEqual([]);
    const names = settings?.socketMatches.map(({ socket }) =>
      socket.is === 'tls' ? socket.tls.serverName : socket,
    );
    expect(names).toHaveLength(2);
    expect(names).toEqual(
      expect.arrayContaining([{ is: 'per-endpoint' }, { is: 'fixed', name: 'db.example.com' }]),
    );
  });

  it('changes no cluster settings when its addresses change', () => {
    const settings = [[], ['1.1.1.1'], ['2.2.2.2']].map(list => traffic([resolvedTo(...list)]).settings);
    expect(new Set(settings.map(each => JSON.stringify(each))).size).toBe(1);
  });

  it('has the health of its entry, unless that is about another externalTarget', () => {
    const healthCheck = { enabled: true };
    const entry = {
      resolvedAddresses: ['1.1.1.1', '1.1.1.2'],
      status: 'Unhealthy',
      error: 'timeout after 10s',
    };
    const healthOf = (targets: readonly Target[]) =>
      traffic(targets).through.Proxy.assignment.localities.flatMap(({ endpoints }) =>
        endpoints.map(each => each.health),
      );
    expect(healthOf([{ fields: { healthCheck }, entry }, inMesh])).toEqual([
      'UNHEALTHY',
      'UNHEALTHY',
      'HEALTHY',
    ]);
    const checked = {
      fields: { ...inMesh.fields, healthCheck },
      entry: { ...entry, address: '100.64.0.1:8080' },
    };
    expect(healthOf([checked, { ...inMesh, fields: { ...inMesh.fields, healthCheck } }])).toEqual([
      'UNKNOWN',
      'UNKNOWN',
    ]);
  });
});
