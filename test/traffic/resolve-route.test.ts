import { describe, expect, it } from 'vitest';
import type { RouteKind } from '../../src/api/key.ts';
import { resolveRoute } from '../../src/traffic/resolve-route.ts';
import type { ResolvedRule } from '../../src/traffic/resolve-route.ts';
import { named } from '../support/declared.ts';
import { endpoint } from '../support/objects.ts';
import { reportedIn, resourcesFrom, ruleOf, trafficOf } from '../support/traffic/resolve.ts';
import {
  backend,
  endpointsObject,
  httpRoute,
  routeObject,
  service,
  serviceObject,
  sliceObject,
  tailnetObject,
  tlsPolicyObject,
} from '../support/traffic/objects.ts';

const tailnet = tailnetObject();
const web = endpointsObject('web');

/** Two objects of two endpoints each, on port 8080 and one more. */
const pair = ['one', 'two'].map((name, at) =>
  endpointsObject(name, [
    endpoint({ name: 'a', meshIP: `100.64.${at}.1`, port: 8080 }),
    endpoint({ name: 'b', meshIP: `100.64.${at}.2`, port: 8080 }),
    endpoint({ name: 'other', meshIP: `100.64.${at}.1`, port: 9090 }),
  ]),
);

/** Index, object and endpoint of all used endpoints. */
function usedIn(rule: ResolvedRule | undefined): readonly string[] {
  return (rule?.backends ?? []).flatMap(({ index, endpoints }) =>
    endpoints.map(({ object, endpoint }) => `${index} ${object.metadata.name} ${endpoint.name}`),
  );
}

describe('an Envoy cluster', () => {
  it.each([
    ['has no route that is declared', 'httproute/default/other/rule/0', [tailnet, web]],
    [
      'has a route in another namespace only',
      'httproute/prod/web/rule/0',
      [httpRoute('web', [backend('web')])],
    ],
    [
      'has a route of another kind only',
      'grpcroute/default/web/rule/0',
      [httpRoute('web', [backend('web')])],
    ],
    [
      'is of a rule that the route has no more',
      'httproute/default/web/rule/1',
      [httpRoute('web', [backend('web')])],
    ],
    [
      'is of a backend that the rule has no more',
      'httproute/default/web/rule/0/backend/1',
      [httpRoute('web', [backend('web')])],
    ],
    [
      'has a route with the label of anchors',
      'httproute/default/web/rule/0',
      [
        named(httpRoute('web', [backend('web')]), 'default/web', {
          labels: { 'mesh-gateway.dev/anchor': '' },
        }),
      ],
    ],
    ['has Services only', 'httproute/default/web/rule/0', [httpRoute('web', [service()])]],
    ['has no backends', 'httproute/default/web/rule/0', [httpRoute('web', [])]],
    [
      'is of a backend that is a Service',
      'httproute/default/web/rule/0/backend/0',
      [httpRoute('web', [service(), backend('web')])],
    ],
    ['is of a route without rules', 'tcproute/default/web/rule/-1', [routeObject('TCPRoute', 'web')]],
    [
      'has a backend with our kind in another group',
      'httproute/default/web/rule/0',
      [httpRoute('web', [{ ...backend('web'), group: 'example.com' }])],
    ],
    [
      'has a backend of our group with another kind',
      'httproute/default/web/rule/0',
      [httpRoute('web', [{ ...backend('web'), kind: 'MeshTailnet' }])],
    ],
  ])('is not resolved if it %s', (_, cluster, objects) => {
    expect(ruleOf(resourcesFrom([tailnet, web, ...objects]), cluster)).toBeUndefined();
  });

  it('of a request mirror is not resolved', () => {
    expect(ruleOf(resourcesFrom([tailnet, web]), 'httproute/default/web/rule/0-mirror-0')).toBeUndefined();
  });

  it('has the endpoints with exactly the port of the backendRef', () => {
    const resources = resourcesFrom([
      tailnet,
      ...pair,
      httpRoute('web', [backend('one', { port: 9090 })], [backend('one')], [backend('two', { port: 9090 })]),
    ]);
    const used = [0, 1, 2].map(rule => usedIn(ruleOf(resources, `httproute/default/web/rule/${rule}`)));
    expect(used).toEqual([['0 one other'], ['0 one a', '0 one b'], ['0 two other']]);
  });

  it('has its backends in the order of the backendRefs, with the indexes of Envoy Gateway', () => {
    const backends = [service({ weight: 0 }), backend('two'), service({ weight: 0 }), backend('one')];
    const rule = ruleOf(
      resourcesFrom([tailnet, ...pair, httpRoute('web', backends)]),
      'httproute/default/web/rule/0',
    );
    expect(usedIn(rule)).toEqual(['1 two a', '1 two b', '3 one a', '3 one b']);
    expect(rule?.isMixed).toBe(false);
  });

  it.each([
    [0, ['0 one a', '0 one b']],
    [2, ['2 two a', '2 two b']],
  ])('of backend %i alone has the endpoints of that one', (at, used) => {
    const route = httpRoute('web', [backend('one'), service(), backend('two')]);
    const rule = ruleOf(
      resourcesFrom([tailnet, ...pair, route]),
      `httproute/default/web/rule/0/backend/${at}`,
    );
    expect(usedIn(rule)).toEqual(used);
    expect(rule?.isMixed).toBe(false);
  });

  it('of a TLSRoute has the backends of all rules', () => {
    const route = routeObject('TLSRoute', 'web', [backend('one'), backend('two')], [backend('three')]);
    const objects = ['one', 'two', 'three'].map((name, at) =>
      endpointsObject(name, [endpoint({ protocol: 'TCP', meshIP: `100.64.0.${at + 1}` })]),
    );
    const rule = ruleOf(resourcesFrom([tailnet, ...objects, route]), 'tlsroute/default/web/rule/-1');
    expect(usedIn(rule)).toEqual(['0 one web', '1 two web', '2 three web']);
    const about = { kind: 'TLSRoute', namespace: 'default', name: 'web' };
    expect(rule?.backends.map(({ place }) => place)).toEqual([
      { about, at: ['spec', 'rules', 0, 'backendRefs', 0] },
      { about, at: ['spec', 'rules', 0, 'backendRefs', 1] },
      { about, at: ['spec', 'rules', 1, 'backendRefs', 0] },
    ]);
  });

  it('has no endpoints of a backend with weight 0, and reports nothing', () => {
    const route = httpRoute('web', [backend('one', { weight: 0 }), backend('missing', { weight: 0 })]);
    const { rule, settings } = trafficOf(resourcesFrom([tailnet, ...pair, route]));
    expect(rule).toMatchObject({ unused: [], backends: [{ endpoints: [] }, { endpoints: [] }] });
    expect(settings).toMatchObject({
      otherSockets: [],
      defaultSocket: { is: 'closed' },
      socketMatches: [{ name: 'clear' }],
    });
  });

  it('has no discovered endpoints yet, and reports it', () => {
    const found = endpointsObject('found', [], { tagSelectors: [{ key: 'web', operator: 'Exists' }] });
    const rule = ruleOf(
      resourcesFrom([tailnet, found, httpRoute('web', [backend('found')])]),
      'httproute/default/web/rule/0',
    );
    expect(rule?.unused.map(({ reason }) => reason)).toEqual(['PortNotFound']);
    expect(reportedIn(rule?.unused ?? [])[0]?.message).toContain('it has no endpoints');
  });
});

describe('a rule that mixes MeshEndpoints with other backends', () => {
  it.each(['HTTPRoute', 'GRPCRoute'] as const)(
    'of %s has sockets for both, and closes all other connections',
    kind => {
      const protocol = kind === 'HTTPRoute' ? 'HTTP' : 'gRPC';
      const mixed = [service(), backend('web')];
      const resources = resourcesFrom([
        tailnet,
        endpointsObject('web', [endpoint({ protocol })]),
        routeObject(kind, 'web', mixed),
      ]);
      const cluster = `${kind.toLowerCase()}/default/web/rule/0`;
      const { rule, settings } = trafficOf(resources, cluster);
      expect(usedIn(rule)).toEqual(['1 web web']);
      expect(settings).toMatchObject({
        otherSockets: [{ name: 'Service/default/shop:80', envoyGatewayName: `${cluster}/tls/0` }],
        defaultSocket: { is: 'closed' },
        socketMatches: [{ name: 'clear' }],
      });
    },
  );

  const raw = endpointsObject('web', [endpoint({ protocol: 'TCP' })]);
  const shop = [serviceObject('shop'), sliceObject('shop', [{ addresses: ['10.0.0.1'] }])];
  const policy = tlsPolicyObject('shop', 'shop', { sectionName: 'other' });
  const backendOfGateway = { group: 'gateway.envoyproxy.io', kind: 'Backend', name: 'legacy' };

  it.each<readonly [RouteKind, readonly object[]]>([
    ['TLSRoute', shop],
    ['TCPRoute', shop],
    ['TCPRoute', [...shop, tlsPolicyObject('other', 'other'), tlsPolicyObject('far/shop', 'shop')]],
  ])('of %s serves MeshEndpoints and Services without TLS', (kind, objects) => {
    const rules = [[service({ weight: 3 }), backend('web')]];
    const resources = resourcesFrom([tailnet, raw, ...objects, routeObject(kind, 'web', ...rules)]);
    const { rule, settings, through } = trafficOf(resources, `${kind.toLowerCase()}/default/web/rule/-1`);
    expect(rule.unused).toEqual([]);
    expect(settings).toMatchObject({
      protocol: 'TCP',
      otherSockets: [{ name: 'Service/default/shop:80' }],
      defaultSocket: { is: 'closed' },
      socketMatches: [{ name: 'clear' }],
    });
    const { localities } = through.Proxy.assignment;
    expect(localities.map(({ weight, endpoints: [first] }) => [weight, first?.address])).toEqual([
      [3, '10.0.0.1'],
      [1, '100.64.0.1'],
    ]);
  });

  it('of a TCPRoute gives the share of a Service without endpoints to the others', () => {
    const rules = [service(), service({ name: 'gone' }), backend('web')];
    const resources = resourcesFrom([
      tailnet,
      raw,
      serviceObject('shop'),
      routeObject('TCPRoute', 'web', rules),
    ]);
    const { rule, through } = trafficOf(resources, 'tcproute/default/web/rule/-1');
    expect(rule.unused).toEqual([]);
    expect(through.Proxy.assignment.localities.map(({ backend: at }) => at)).toEqual([2]);
  });

  it.each<readonly [string, RouteKind, ReturnType<typeof service>, readonly object[]]>([
    ['a UDPRoute', 'UDPRoute', service(), shop],
    ['a TCPRoute and a Service with a BackendTLSPolicy', 'TCPRoute', service(), [...shop, policy]],
    ['a TLSRoute and a Service with a BackendTLSPolicy', 'TLSRoute', service(), [...shop, policy]],
    ['a TCPRoute and a Backend', 'TCPRoute', backendOfGateway, []],
  ])('of %s keeps the cluster of Envoy Gateway', (_, kind, other, objects) => {
    const to = routeObject(kind, 'web', [other, backend('web')]);
    const resources = resourcesFrom([tailnet, raw, ...objects, to]);
    const { rule, settings, through } = trafficOf(resources, `${kind.toLowerCase()}/default/web/rule/-1`);
    expect(settings).toBeUndefined();
    expect(usedIn(rule)).toEqual([]);
    expect(rule.unused).toMatchObject([{ reason: 'MixedBackends', object: 'MeshEndpoints/default/web' }]);
    expect(through.Proxy.assignment.localities).toEqual([]);
  });

  it('keeps the default protocol', () => {
    const grpc = endpointsObject('grpc', [endpoint({ name: 'a', meshIP: '100.64.0.7', protocol: 'gRPC' })]);
    const route = httpRoute(
      'web',
      [backend('grpc'), backend('web'), service()],
      [backend('grpc'), service()],
    );
    const shop = [serviceObject('shop'), sliceObject('shop', [{ addresses: ['10.0.0.1'] }])];
    const resources = resourcesFrom([tailnet, web, grpc, ...shop, route]);
    const { rule, settings } = trafficOf(resources);
    expect(usedIn(rule)).toEqual(['1 web web']);
    expect(settings?.protocol).toBe('HTTP/1.1');
    expect(reportedIn(rule.unused)).toMatchObject([
      {
        reason: 'ProtocolConflict',
        message:
          'spec.rules[0].backendRefs[0]: endpoint a of MeshEndpoints default/grpc needs HTTP/2, but Envoy uses HTTP/1.1 for the backends of the rule that are not MeshEndpoints, and one protocol for all endpoints of a rule: give it a rule of its own',
      },
    ]);
    expect(trafficOf(resources, 'httproute/default/web/rule/1').settings).toBeUndefined();
  });

  it('keeps the cluster of Envoy Gateway while no mesh endpoint can be used', () => {
    const route = httpRoute(
      'web',
      [service(), backend('missing')],
      [service(), backend('missing', { weight: 0 })],
    );
    const resources = resourcesFrom([tailnet, web, route]);
    expect(trafficOf(resources, 'httproute/default/web/rule/0').settings).toBeUndefined();
    expect(trafficOf(resources, 'httproute/default/web/rule/1').settings).toBeUndefined();
  });

  it('has the sockets of all backends while one of them has all the weight, so that one edit can give it to another', () => {
    const shop = [serviceObject('shop'), sliceObject('shop', [{ addresses: ['10.0.0.1'] }])];
    const of = (weights: readonly [shop: number, web: number]) => {
      const route = httpRoute('web', [
        service({ weight: weights[0] }),
        backend('web', { weight: weights[1] }),
      ]);
      const { settings, through } = trafficOf(resourcesFrom([tailnet, web, ...shop, route]));
      const sockets = [...(settings?.socketMatches ?? []), ...(settings?.otherSockets ?? [])];
      const used = through.Proxy.assignment.localities.flatMap(({ endpoints }) => endpoints);
      return {
        sockets: sockets.map(({ name }) => name),
        used: used.map(({ address, socketMatch }) => [address, socketMatch]),
      };
    };
    const [before, after] = [of([100, 0]), of([0, 100])];
    expect(before.used).toEqual([['10.0.0.1', 'Service/default/shop:80']]);
    expect(after.used).toEqual([['100.64.0.1', 'clear']]);
    for (const { sockets } of [before, after])
      expect(new Set(sockets)).toEqual(new Set(['clear', 'Service/default/shop:80']));
  });
});

describe('all rules of a route', () => {
  it.each([
    ['HTTPRoute', ['httproute/default/web/rule/0', 'httproute/default/web/rule/2']],
    ['GRPCRoute', ['grpcroute/default/web/rule/0', 'grpcroute/default/web/rule/2']],
    ['TLSRoute', ['tlsroute/default/web/rule/-1']],
  ] as const)('of kind %s are those with MeshEndpoints', (kind, clusters) => {
    const route = routeObject(kind, 'web', [backend('web')], [service()], [service(), backend('missing')]);
    const resources = resourcesFrom([tailnet, web, route]);
    const read = resources.route({ kind, namespace: 'default', name: 'web' });
    const rules = read ? resolveRoute(resources, read) : [];
    expect(rules.map(({ cluster }) => cluster.text)).toEqual(clusters);
    expect(rules).toEqual(clusters.map(cluster => ruleOf(resources, cluster)));
  });
});

describe('several routes and rules that share objects', () => {
  it('do not change each other', () => {
    const alone = resourcesFrom([tailnet, ...pair, httpRoute('web', [backend('one')])]);
    const shared = resourcesFrom([
      tailnet,
      ...pair,
      httpRoute('web', [backend('one')], [backend('one'), backend('one'), backend('two')]),
      routeObject('TCPRoute', 'raw', [backend('one')]),
    ]);
    expect(trafficOf(shared)).toEqual(trafficOf(alone));
    expect(usedIn(ruleOf(shared, 'tcproute/default/raw/rule/-1'))).toEqual(['0 one a', '0 one b']);
  });
});
