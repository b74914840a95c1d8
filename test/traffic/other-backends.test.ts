import { describe, expect, it } from 'vitest';
import { GATEWAY_GROUP } from '../../src/api/objects/gateway-api.ts';
import { gatewayObject } from '../support/declared.ts';
import { endpoint } from '../support/objects.ts';
import { reportedIn, resourcesFrom, ruleOf, trafficOf } from '../support/traffic/resolve.ts';
import {
  backend,
  backendObject,
  endpointsObject,
  httpRoute,
  service,
  serviceObject,
  sliceObject,
  tailnetObject,
  tlsPolicyObject,
} from '../support/traffic/objects.ts';

const CLUSTER = 'httproute/default/web/rule/0';
const ENVOY = { group: 'gateway.envoyproxy.io', kind: 'Backend' };
const mesh = [tailnetObject(), endpointsObject('web')];
const ready = (...addresses: readonly string[]) => ({ addresses, conditions: { ready: true } });

/** The localities of a rule of some backends, with each endpoint as a text. */
function localitiesOf(backends: readonly Parameters<typeof backend>[1][], objects: readonly object[]) {
  const resources = resourcesFrom([...mesh, ...objects, httpRoute('web', backends as never)]);
  const { rule, through } = trafficOf(resources, CLUSTER);
  return {
    unused: rule.unused.map(({ reason }) => reason),
    localities: through.Proxy.assignment.localities.map(({ backend: at, weight, priority, endpoints }) => [
      `${at} weight ${weight} priority ${priority}`,
      ...endpoints.map(
        each =>
          `${each.address}:${each.port} ${each.health} ${each.socketMatch === 'clear' ? 'mesh' : each.socketMatch}`,
      ),
    ]),
  };
}

const MESH = '100.64.0.1:8080 HEALTHY mesh';

describe('a Service beside MeshEndpoints', () => {
  it('has the addresses of its EndpointSlices, its weight, and no proxy', () => {
    const objects = [
      serviceObject('shop'),
      sliceObject('shop', [ready('10.0.0.2'), ready('10.0.0.1')]),
      sliceObject('shop', [ready('10.0.0.3')], { name: 'shop-y' }),
      sliceObject('other', [ready('10.0.0.9')]),
    ];
    const found = localitiesOf([backend('web', { weight: 3 }), service({ weight: 7 })], objects);
    expect(found).toEqual({
      unused: [],
      localities: [
        ['0 weight 3 priority 0', MESH],
        [
          '1 weight 7 priority 0',
          `10.0.0.1:8080 UNKNOWN Service/default/shop:80`,
          `10.0.0.2:8080 UNKNOWN Service/default/shop:80`,
          `10.0.0.3:8080 UNKNOWN Service/default/shop:80`,
        ],
      ],
    });
  });

  it('resolves its port by name in EndpointSlices', () => {
    const ports = [
      { name: 'metrics', port: 81 },
      { name: 'http', port: 80 },
    ];
    const targets = [
      { name: 'metrics', port: 9090, protocol: 'TCP' },
      { name: 'http', port: 3000, protocol: 'TCP' },
      { name: 'http', port: 3001, protocol: 'UDP' },
    ];
    const objects = [
      serviceObject('shop', ports),
      sliceObject('shop', [ready('10.0.0.1')], { ports: targets }),
    ];
    const { localities } = localitiesOf([backend('web'), service()], objects);
    expect(localities[1]?.slice(1)).toEqual([`10.0.0.1:3000 UNKNOWN Service/default/shop:80`]);
  });

  it.each([
    ['is ready', { ready: true }, 'UNKNOWN'],
    ['has no conditions', {}, 'UNKNOWN'],
    ['is not ready', { ready: false }, 'DRAINING'],
    ['is terminating, though it serves', { ready: false, serving: true, terminating: true }, 'DRAINING'],
    ['is ready and serving', { ready: true, serving: true, terminating: false }, 'UNKNOWN'],
    ['is ready but not serving', { ready: true, serving: false, terminating: false }, 'DRAINING'],
  ])('with a pod that %s has the health status that Envoy Gateway sets', (_, conditions, health) => {
    const slice = sliceObject('shop', [{ addresses: ['10.0.0.1'], conditions }]);
    const { localities } = localitiesOf([backend('web'), service()], [serviceObject('shop'), slice]);
    expect(localities[1]?.[1]).toBe(`10.0.0.1:8080 ${health} Service/default/shop:80`);
  });

  it('has the addresses of both IP families, each once, and no FQDN', () => {
    const slice = (addressType: string, ...addresses: readonly string[]) =>
      sliceObject('shop', [ready(...addresses)], { addressType, name: addressType.toLowerCase() });
    const objects = [
      slice('IPv4', '10.0.0.1', '10.0.0.1'),
      slice('IPv6', 'fd00::1'),
      slice('FQDN', 'a.example.org'),
    ];
    const { localities } = localitiesOf([backend('web'), service()], [serviceObject('shop'), ...objects]);
    expect(localities[1]?.slice(1).map(text => text.split(' ')[0])).toEqual([
      '10.0.0.1:8080',
      'fd00::1:8080',
    ]);
  });

  it('has the socket name that Envoy Gateway numbers among weighted backends, and a stable one of its own', () => {
    const objects = [
      ...mesh,
      ...['shop', 'new'].flatMap((name, at) => [
        serviceObject(name),
        sliceObject(name, [ready(`10.0.0.${at}`)]),
      ]),
    ];
    const canary = (weight: number) => {
      const backends = [service({ name: 'new', weight }), service(), backend('web')];
      return trafficOf(resourcesFrom([...objects, httpRoute('web', backends)]), CLUSTER);
    };
    const [before, after] = [canary(0), canary(1)];
    const madeAs = ({ settings }: typeof before) => settings?.otherSockets.at(-1)?.envoyGatewayName;
    expect([madeAs(before), madeAs(after)]).toEqual([`${CLUSTER}/tls/0`, `${CLUSTER}/tls/1`]);
    const namedBy = ({ through }: typeof before) =>
      through.Proxy.assignment.localities.find(each => each.backend === 1)?.endpoints[0]?.socketMatch;
    expect([namedBy(before), namedBy(after)]).toEqual(['Service/default/shop:80', 'Service/default/shop:80']);
  });

  it('has no socket while its weight is 0, if a policy gives it TLS, which only Envoy Gateway knows', () => {
    const backends = [backend('web'), service({ weight: 0 })];
    const objects = [...mesh, tlsPolicyObject('shop', 'shop'), httpRoute('web', backends)];
    const { settings } = trafficOf(resourcesFrom(objects), CLUSTER);
    expect(settings?.socketMatches.map(({ name }) => name)).toEqual(['clear']);
  });

  it('of another namespace needs a ReferenceGrant for Services', () => {
    const backends = [backend('web'), service({ name: 'shop', namespace: 'team' })];
    const objects = [
      serviceObject('team/shop'),
      sliceObject('shop', [ready('10.0.0.1')], { name: 'team/shop-x' }),
    ];
    const grant = gatewayObject('ReferenceGrant', 'team/services', {
      from: [{ group: GATEWAY_GROUP, kind: 'HTTPRoute', namespace: 'default' }],
      to: [{ group: '', kind: 'Service' }],
    });
    expect(localitiesOf(backends, objects).localities).toHaveLength(1);
    expect(localitiesOf(backends, [...objects, grant]).localities).toHaveLength(2);
  });
});

describe('a Backend of Envoy Gateway beside MeshEndpoints', () => {
  const ref = { ...ENVOY, name: 'legacy', port: undefined };

  it('has its IP addresses', () => {
    const spec = { endpoints: [{ ip: { address: '10.1.1.1', port: 3000 } }] };
    const { localities, unused } = localitiesOf([backend('web'), ref], [backendObject('legacy', spec)]);
    expect(localities[1]).toEqual(['1 weight 1 priority 0', `10.1.1.1:3000 UNKNOWN Backend/default/legacy`]);
    expect(unused).toEqual([]);
  });

  it('has the last priority where it is a fallback', () => {
    const spec = { fallback: true, endpoints: [{ ip: { address: '10.1.1.1', port: 3000 } }] };
    const { localities } = localitiesOf([ref, backend('web')], [backendObject('legacy', spec)]);
    expect(localities.map(([title]) => title)).toEqual(['0 weight 1 priority 1', '1 weight 1 priority 0']);
  });
});

describe('a rule with a backend that is away', () => {
  it.each([
    ['a MeshEndpoints that does not exist', backend('gone'), []],
    ['a Service that does not exist', service(), []],
    ['a Service without endpoints', service(), [serviceObject('shop')]],
    [
      'a Service without that port',
      service({ port: 81 }),
      [serviceObject('shop'), sliceObject('shop', [ready('10.0.0.1')])],
    ],
    ['a Backend that does not exist', { ...ENVOY, name: 'gone' }, []],
  ])(
    'has the endpoints of MeshEndpoints alone, for which Envoy Gateway has no cluster: %s',
    (_, other, objects) => {
      const present = [serviceObject('there'), sliceObject('there', [ready('10.0.0.9')])];
      const { localities, unused } = localitiesOf(
        [backend('web'), service({ name: 'there' }), other],
        [...present, ...objects],
      );
      expect(localities.map(([title]) => title)).toEqual(['0 weight 1 priority 0']);
      // Of the other one, if that is a MeshEndpoints.
      expect(unused.filter(reason => reason !== 'BackendNotFound')).toEqual([]);
    },
  );

  it('is not one with a missing backend of weight 0', () => {
    const resources = resourcesFrom([...mesh, httpRoute('web', [backend('web'), service({ weight: 0 })])]);
    expect(trafficOf(resources, CLUSTER).rule.unused).toEqual([]);
  });

  it('with a backend of an unsupported kind is left to Envoy Gateway', () => {
    const other = { group: 'example.com', kind: 'Bucket', name: 'far', port: 80 };
    const resources = resourcesFrom([...mesh, httpRoute('web', [backend('web'), other])]);
    const { rule, settings } = trafficOf(resources, CLUSTER);
    expect(settings).toBeUndefined();
    expect(reportedIn(rule.unused)).toMatchObject([
      { reason: 'MixedBackends', message: expect.stringContaining('a rule of its own') as string },
    ]);
  });
});

describe('a rule with a backend that Envoy Gateway alone can serve', () => {
  const far = { group: 'multicluster.x-k8s.io', kind: 'ServiceImport', name: 'far', port: 80, weight: 3 };
  const named = backendObject('named', { endpoints: [{ fqdn: { hostname: 'example.com', port: 80 } }] });

  it.each([
    ['a ServiceImport', far],
    ['a Backend with a host name', { ...ENVOY, name: 'named', weight: 3 }],
  ])('leaves its cluster to it, and has one for each MeshEndpoints: %s', (_, other) => {
    const route = httpRoute('web', [backend('web'), other, service()]);
    const there = [serviceObject('shop'), sliceObject('shop', [ready('10.0.0.1')])];
    const resources = resourcesFrom([...mesh, ...there, named, route]);
    const { rule } = trafficOf(resources, CLUSTER);
    expect(rule.shares).toEqual({
      total: 5,
      mesh: [{ cluster: `${CLUSTER}/backend/0`, weight: 1 }],
      others: [{ cluster: CLUSTER, weight: 4 }],
      isApart: true,
    });
    expect(rule.unused).toEqual([]);
    const own = trafficOf(resources, `${CLUSTER}/backend/0`);
    expect(own.through.Proxy.assignment.localities.map(({ backend: index }) => index)).toEqual([0]);
    expect(ruleOf(resources, `${CLUSTER}/backend/1`)).toBeUndefined();
  });
});

describe('filters of a backendRef', () => {
  const modify = { type: 'RequestHeaderModifier', requestHeaderModifier: { remove: ['x'] } };
  const shop = [serviceObject('shop'), sliceObject('shop', [ready('10.0.0.1')])];
  const ruleWith = (...backends: Parameters<typeof httpRoute>[1][]) =>
    trafficOf(resourcesFrom([...mesh, ...shop, httpRoute('web', ...backends)]), CLUSTER).rule;

  it.each([
    ['a Service', [backend('web'), service({ filters: [modify] })]],
    ['a MeshEndpoints', [backend('web', { filters: [modify] }), service()]],
  ])('that modify headers are no problem: %s', (_, backends) => {
    expect(ruleWith(backends).unused).toEqual([]);
  });

  it('to a MeshEndpoints that cannot be applied are reported, with the fix', () => {
    const rewrite = { type: 'URLRewrite', urlRewrite: { hostname: 'example.com' } };
    const { unused } = ruleWith([backend('web', { filters: [modify, rewrite] }), service()]);
    expect(unused).toMatchObject([{ reason: 'NotSupported', object: 'MeshEndpoints/default/web' }]);
    expect(reportedIn(unused)[0]?.message).toMatch(
      /ignores filter URLRewrite of .* to the filters of the rule/,
    );
  });

  it('give each backend of the rule a cluster of its own, where one is a MeshEndpoints', () => {
    const filtered = [backend('web', { filters: [modify] }), service({ weight: 3 })];
    expect(ruleWith(filtered).shares?.others).toEqual([{ cluster: `${CLUSTER}/backend/1`, weight: 3 }]);
    const resources = resourcesFrom([...mesh, ...shop, httpRoute('web', filtered)]);
    const { through, settings } = trafficOf(resources, `${CLUSTER}/backend/1`);
    expect(through.Proxy.assignment.localities.map(({ backend: index }) => index)).toEqual([1]);
    expect(settings?.otherSockets).toEqual([
      { name: 'Service/default/shop:80', envoyGatewayName: `${CLUSTER}/tls/1` },
    ]);
  });
});

describe('priorities of a mixed rule', () => {
  it('are numbered over all backends', () => {
    const web = endpointsObject('web', [endpoint({ priority: 4 })]);
    const objects = [serviceObject('shop'), sliceObject('shop', [ready('10.0.0.1')])];
    const resources = resourcesFrom([
      tailnetObject(),
      web,
      ...objects,
      httpRoute('web', [backend('web'), service()]),
    ]);
    const { localities } = trafficOf(resources, CLUSTER).through.Proxy.assignment;
    expect(localities.map(({ backend: at, priority }) => [at, priority])).toEqual([
      [0, 1],
      [1, 0],
    ]);
  });
});
