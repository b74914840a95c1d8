import { describe, expect, it } from 'vitest';
import type { RouteKind } from '../../src/api/key.ts';
import { formatWithReason } from '../../src/api/problem.ts';
import { gatewayObject, named, route } from '../support/declared.ts';
import { endpoint, meshRoutePolicy } from '../support/objects.ts';
import { resourcesFrom, trafficOf } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointsObject,
  service,
  serviceObject,
  sliceObject,
  tailnetObject,
  tlsPolicyObject,
} from '../support/traffic/objects.ts';
import { CERTIFICATE } from '../support/traffic/certificates.ts';

type Fields = Readonly<Record<string, unknown>>;

const GROUP = 'mesh-gateway.dev';
const MESH = { group: GROUP, kind: 'MeshEndpoints', name: 'home' };
const SHOP = { kind: 'Service', name: 'shop', port: 80 };

/** A policy of the route with these levels. */
const levels = (...all: readonly (readonly Fields[])[]) => policyWith(all);
const policyWith = (all: readonly (readonly Fields[])[], more: Fields = {}, kind: RouteKind = 'HTTPRoute') =>
  named(
    meshRoutePolicy({
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind, name: 'web' }],
      failover: { levels: all.map(backends => ({ backends })) },
      ...more,
    }),
    'default/p',
  );

const pod = (address: string, conditions: Fields = { ready: true }) => ({ addresses: [address], conditions });
const pods = (...addresses: readonly string[]) =>
  sliceObject(
    'shop',
    addresses.map(each => pod(each)),
  );
const home = (fields: Fields = {}) => endpointsObject('home', [endpoint(fields)]);
const toHome = (kind: RouteKind = 'HTTPRoute', backends: readonly Fields[] = [backend('home')]) =>
  route(kind, 'web', { rules: [{ backendRefs: backends }] });

const CLUSTERS: Readonly<Record<RouteKind, string>> = {
  HTTPRoute: 'httproute/default/web/rule/0',
  GRPCRoute: 'grpcroute/default/web/rule/0',
  TLSRoute: 'tlsroute/default/web/rule/-1',
  TCPRoute: 'tcproute/default/web/rule/-1',
  UDPRoute: 'udproute/default/web/rule/-1',
};

function resolved(objects: readonly object[], kind: RouteKind = 'HTTPRoute') {
  const traffic = trafficOf(resourcesFrom([tailnetObject(), ...objects]), CLUSTERS[kind]);
  const { localities } = traffic.through.Direct.assignment;
  const priorities = localities
    .toSorted((a, b) => a.priority - b.priority || a.backend - b.backend)
    .map(({ priority, weight, endpoints }) => {
      const texts = endpoints.map(({ address, port, health }) => `${address}:${port} ${health}`);
      return `${priority} *${weight}: ${texts.join(', ')}`;
    });
  const problems = traffic.rule.levels?.problems.map(formatWithReason);
  return { ...traffic, localities, priorities, problems };
}

const HOME = '100.64.0.1:8080 HEALTHY';
const SHOP_PODS = [serviceObject('shop'), pods('10.0.0.1', '10.0.0.2')];
const FIRST_SHOP = [`0 *1: 10.0.0.1:8080 UNKNOWN, 10.0.0.2:8080 UNKNOWN`, `1 *1: ${HOME}`];

describe('a level with a Service beyond the rule', () => {
  it('has its pods, in clear text and without a proxy, before the MeshEndpoints', () => {
    const { priorities, problems, localities, rule, settings } = resolved([
      ...[home(), toHome(), ...SHOP_PODS, levels([SHOP], [MESH])],
    ]);
    expect(priorities).toEqual(FIRST_SHOP);
    expect([problems, rule.unused, rule.isMixed]).toEqual([[], [], false]);
    const added = localities.find(({ priority }) => priority === 0);
    expect(added).toMatchObject({
      backend: 1,
      endpoints: [{ socketMatch: 'clear' }, { socketMatch: 'clear' }],
    });
    expect(added?.endpoints[0]).not.toHaveProperty('proxy');
    expect(settings?.socketMatches.map(({ name }) => name)).toEqual(['clear']);
  });

  it('changes no setting of a cluster in clear text, so that nothing is translated', () => {
    const without = resolved([home(), toHome(), ...SHOP_PODS]);
    const { settings } = resolved([home(), toHome(), ...SHOP_PODS, levels([SHOP], [MESH])]);
    expect(settings).toEqual(without.settings);
  });

  it('adds the socket in clear text to a cluster with TLS, whatever the Service is', () => {
    const tls = home({ protocol: 'HTTPS', tls: { ca: CERTIFICATE } });
    const socketsOf = (...objects: readonly object[]) =>
      resolved([tls, toHome(), ...objects]).settings?.socketMatches.map(({ socket }) => socket.is);
    expect(socketsOf(...SHOP_PODS)).toEqual(['tls']);
    expect(socketsOf(...SHOP_PODS, levels([SHOP]))?.toSorted()).toEqual(['clear', 'tls']);
  });

  it('is not checked where Envoy checks the MeshEndpoints', () => {
    const checked = home({ healthCheck: { enabled: true } });
    const { localities, settings } = resolved([checked, toHome(), ...SHOP_PODS, levels([SHOP], [MESH])]);
    expect(settings?.healthCheck).toBeDefined();
    const flags = localities.flatMap(({ endpoints }) => endpoints.map(each => each.isHealthCheckDisabled));
    expect(flags.toSorted()).toEqual([false, true, true]);
  });

  it('has no priority while the Service has no endpoint', () => {
    const { priorities, problems } = resolved([
      ...[home(), toHome(), serviceObject('shop'), pods(), levels([SHOP], [MESH])],
    ]);
    expect([priorities, problems]).toEqual([[`0 *1: ${HOME}`], []]);
  });

  it('serves alone while the MeshEndpoints has no endpoint', () => {
    const { priorities } = resolved([
      endpointsObject('home', []),
      toHome(),
      ...SHOP_PODS,
      levels([MESH], [SHOP]),
    ]);
    expect(priorities).toEqual([`0 *1: 10.0.0.1:8080 UNKNOWN, 10.0.0.2:8080 UNKNOWN`]);
  });

  it.each<readonly [RouteKind, string, string]>([
    ['GRPCRoute', 'gRPC', 'TCP'],
    ['TLSRoute', 'TLS', 'TCP'],
    ['TCPRoute', 'TCP', 'TCP'],
    ['UDPRoute', 'UDP', 'UDP'],
  ])('of a %s has the pods of the port with its transport', (kind, protocol, transport) => {
    const both = ['TCP', 'UDP'].map(each => ({ name: each.toLowerCase(), port: 80, protocol: each }));
    const targets = both.map((each, index) => ({ ...each, port: 9000 + index }));
    const slice = sliceObject('shop', [pod('10.0.0.1')], { ports: targets });
    const { priorities, problems } = resolved(
      [
        home({ protocol }),
        toHome(kind),
        serviceObject('shop', both),
        slice,
        policyWith([[SHOP], [MESH]], {}, kind),
      ],
      kind,
    );
    expect(problems).toEqual([]);
    expect(priorities[0]).toBe(`0 *1: 10.0.0.1:${transport === 'TCP' ? 9000 : 9001} UNKNOWN`);
    expect(priorities).toHaveLength(2);
  });

  it('has an address that two levels or backends share once only, in the first level', () => {
    const other = [serviceObject('other'), sliceObject('other', [pod('10.0.0.1'), pod('10.0.0.9')])];
    const { priorities } = resolved([
      ...[home(), toHome(), ...SHOP_PODS, ...other],
      levels([SHOP], [{ ...SHOP, name: 'other' }, SHOP], [MESH]),
    ]);
    expect(priorities).toEqual([FIRST_SHOP[0], '1 *1: 10.0.0.9:8080 UNKNOWN', `2 *1: ${HOME}`]);
  });
});

describe('pods of a Service that terminate or are not ready', () => {
  const terminating = { ready: false, serving: true, terminating: true };
  const notReady = { ready: false, serving: false, terminating: false };

  it.each([
    ['beyond the rule', [backend('home')]],
    ['in the rule', [backend('home'), service()]],
  ])('are left out while others are ready, so that a rolling update moves no traffic: %s', (_, backends) => {
    const slice = sliceObject('shop', [
      ...[pod('10.0.0.1', terminating), pod('10.0.0.2'), pod('10.0.0.3', notReady)],
    ]);
    const given = [home(), toHome('HTTPRoute', backends), serviceObject('shop'), slice];
    expect(resolved([...given, levels([SHOP], [MESH])]).priorities).toEqual([
      '0 *1: 10.0.0.2:8080 UNKNOWN',
      `1 *1: ${HOME}`,
    ]);
  });

  it('drain in their level while none is ready', () => {
    const slice = sliceObject('shop', [pod('10.0.0.1', terminating), pod('10.0.0.3', notReady)]);
    const given = [home(), toHome(), serviceObject('shop'), slice];
    expect(resolved([...given, levels([SHOP], [MESH])]).priorities).toEqual([
      '0 *1: 10.0.0.1:8080 DRAINING, 10.0.0.3:8080 DRAINING',
      `1 *1: ${HOME}`,
    ]);
  });
});

describe('a level with backends of the rule', () => {
  const a = endpointsObject('a', [endpoint({ meshIP: '100.64.0.2', meshFQDN: 'a.example.ts.net' })]);
  const A = '100.64.0.2:8080 HEALTHY';
  const weighted = [backend('home', { weight: 3 }), backend('a', { weight: 7 })];

  it.each<readonly [string, readonly (readonly Fields[])[], readonly string[]]>([
    ['orders them', [[{ ...MESH, name: 'a' }], [MESH]], [`0 *7: ${A}`, `1 *3: ${HOME}`]],
    ['keeps weights in a level', [[MESH, { ...MESH, name: 'a' }]], [`0 *3: ${HOME}`, `0 *7: ${A}`]],
    ['leaves those that none names in the first', [[], [MESH]].slice(1), [`0 *3: ${HOME}`, `0 *7: ${A}`]],
    [
      'counts where a backend is named first',
      [[MESH], [MESH, { ...MESH, name: 'a' }]],
      [`0 *3: ${HOME}`, `1 *7: ${A}`],
    ],
    [
      'names one of its ports',
      [[{ ...MESH, name: 'a', port: 8080 }], [{ ...MESH, port: 8080 }]],
      [`0 *7: ${A}`, `1 *3: ${HOME}`],
    ],
  ])('%s', (_, all, expected) => {
    const { priorities, problems } = resolved([home(), a, toHome('HTTPRoute', weighted), levels(...all)]);
    expect([priorities, problems]).toEqual([expected, []]);
  });

  it('may name a Service of the rule, which keeps its socket and weight', () => {
    const { priorities, localities, rule } = resolved([
      ...[home(), toHome('HTTPRoute', [backend('home'), service({ weight: 5 })]), ...SHOP_PODS],
      levels([SHOP], [MESH]),
    ]);
    expect(priorities).toEqual([FIRST_SHOP[0]?.replace('*1', '*5'), FIRST_SHOP[1]]);
    expect(rule.levels?.beyond).toEqual([]);
    const { endpoints = [] } = localities.find(({ priority }) => priority === 0) ?? {};
    expect(endpoints[0]?.socketMatch).toBe('Service/default/shop:80');
  });

  it('comes before preferences and the priority of endpoints', () => {
    const both = endpointsObject('home', [
      endpoint({ name: 'x', meshIP: '100.64.0.8', meshFQDN: 'x.example.ts.net', priority: 1 }),
      endpoint({ name: 'y', meshIP: '100.64.0.9', meshFQDN: 'y.example.ts.net', metadata: { region: 'eu' } }),
    ]);
    const prefer = { endpoints: { prefer: [{ matchLabels: { region: 'eu' } }] } };
    const { priorities } = resolved([
      ...[both, a, toHome('HTTPRoute', weighted)],
      policyWith([[{ ...MESH, name: 'a' }], [MESH]], prefer),
    ]);
    expect(priorities).toEqual([
      `0 *7: ${A}`,
      '1 *3: 100.64.0.9:8080 HEALTHY',
      '2 *3: 100.64.0.8:8080 HEALTHY',
    ]);
  });
});

describe('a backend of a level that cannot be used', () => {
  const grant = (from: Fields = {}, to: Fields = {}) =>
    gatewayObject('ReferenceGrant', 'team/grant', {
      from: [{ group: GROUP, kind: 'MeshRoutePolicy', namespace: 'default', ...from }],
      to: [{ group: '', kind: 'Service', ...to }],
    });
  const inTeam = [
    serviceObject('team/shop'),
    sliceObject('shop', [pod('10.0.0.5')], { name: 'team/shop-x' }),
  ];
  const withPort = (port: Fields) => serviceObject('shop', [{ port: 80, ...port }]);

  it.each<readonly [string, Fields, readonly object[], RegExp]>([
    [
      'a MeshEndpoints beyond the rule',
      { ...MESH, name: 'other' },
      [],
      /^BackendNotFound: spec\.failover\.levels\[0\]\.backends\[0\]: MeshEndpoints default\/other is not a backend of the rule, /,
    ],
    [
      'a Backend beyond the rule',
      { group: 'gateway.envoyproxy.io', kind: 'Backend', name: 'b' },
      [],
      /^BackendNotFound: .* Backend default\/b is not a backend of the rule/,
    ],
    [
      'a Service that does not exist',
      SHOP,
      [],
      /^BackendNotFound: .* Service default\/shop:80 does not exist/,
    ],
    [
      'a port that the Service does not have',
      SHOP,
      [withPort({ port: 81 })],
      /^PortNotFound: .* port 80 is not a TCP port of Service default\/shop:80/,
    ],
    ['a port of another transport', SHOP, [withPort({ protocol: 'UDP' })], /^PortNotFound: /],
    [
      'a Service of another namespace without a grant',
      { ...SHOP, namespace: 'team' },
      inTeam,
      /^RefNotPermitted: .* no ReferenceGrant lets any MeshRoutePolicy of namespace default refer to Service team\/shop:80: /,
    ],
    [
      'a grant for routes only',
      { ...SHOP, namespace: 'team' },
      [...inTeam, grant({ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute' })],
      /^RefNotPermitted: /,
    ],
    [
      'a grant for another Service',
      { ...SHOP, namespace: 'team' },
      [...inTeam, grant({}, { name: 'other' })],
      /^RefNotPermitted: /,
    ],
    [
      'a Service with a BackendTLSPolicy',
      SHOP,
      [...SHOP_PODS, tlsPolicyObject('tls', 'shop')],
      /^TLSNotSupported: .* a BackendTLSPolicy targets it/,
    ],
    [
      'a port with TLS',
      SHOP,
      [withPort({ appProtocol: 'https' })],
      /^TLSNotSupported: .* its port has appProtocol https/,
    ],
    [
      'a port with HTTP/2 beside HTTP/1.1',
      SHOP,
      [withPort({ appProtocol: 'kubernetes.io/h2c' })],
      /^ProtocolConflict: .* Service default\/shop:80 needs HTTP\/2, but Envoy uses HTTP\/1\.1 /,
    ],
  ])('is reported, and the others are used: %s', (_, named, objects, reason) => {
    const { problems, priorities } = resolved([home(), toHome(), ...objects, levels([named], [MESH])]);
    expect(problems).toEqual([expect.stringMatching(reason)]);
    expect(priorities).toEqual([`0 *1: ${HOME}`]);
  });

  it('is used with a grant for policies of the namespace', () => {
    const { priorities, problems } = resolved([
      ...[home(), toHome(), ...inTeam, grant()],
      levels([{ ...SHOP, namespace: 'team' }], [MESH]),
    ]);
    expect([priorities, problems]).toEqual([['0 *1: 10.0.0.5:8080 UNKNOWN', `1 *1: ${HOME}`], []]);
  });

  it.each([
    ['kubernetes.io/h2c', 'HTTP/2'],
    ['grpc', 'HTTP/2'],
  ])('is used with appProtocol %s beside endpoints with %s', appProtocol => {
    const { priorities, problems } = resolved([
      ...[home({ protocol: 'gRPC' }), toHome(), withPort({ appProtocol }), pods('10.0.0.1')],
      levels([SHOP], [MESH]),
    ]);
    expect([priorities.length, problems]).toEqual([2, []]);
  });

  it('is used for raw bytes whatever its appProtocol is', () => {
    const { problems } = resolved(
      [
        ...[
          home({ protocol: 'TLS' }),
          toHome('TLSRoute'),
          withPort({ appProtocol: 'https' }),
          pods('10.0.0.1'),
        ],
        policyWith([[SHOP], [MESH]], {}, 'TLSRoute'),
      ],
      'TLSRoute',
    );
    expect(problems).toEqual([]);
  });
});
