import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../src/api/problem.ts';
import { stringify } from 'yaml';
import type { ResourceKind } from '../../src/api/key.ts';
import { check } from '../../src/tools/check/check.ts';
import { readObjects, servedObjects } from '../../src/tools/check/objects.ts';
import { meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshGateway, meshRoutePolicy, meshTailnet } from '../support/objects.ts';
import { findingText } from '../support/tools/checked.ts';

type Fields = Readonly<Record<string, unknown>>;

const web = (spec: Fields = {}) => named(meshEndpoints(spec), 'default/web');
const tailnet = named(meshTailnet(), 'example');
const gateway = openGateway('default/public');
const service = (name: string) =>
  named({ apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } }, name);
const toBackends = (name: string, backendRefs: readonly object[], spec: Fields = {}) =>
  route('HTTPRoute', name, { rules: [{ backendRefs }], ...spec });
const good = [web(), tailnet, gateway, route('HTTPRoute', 'default/web')];

/** The findings of objects in one file, without the notes. */
const found = (...objects: readonly object[]) =>
  check(readObjects([{ name: 'all.yaml', text: objects.map(each => stringify(each)).join('---\n') }]))
    .findings.map(findingText)
    .filter(text => !text.startsWith('note'));

const toWeb = { name: 'web', port: 80 };
const labelled = (team: string) =>
  named({ apiVersion: 'v1', kind: 'Namespace' }, 'default', { labels: { team } });
const listeners = (hostname?: string, namespaces: Fields = { from: 'All' }, port = 80) =>
  openGateway('default/public', {
    listeners: [
      { name: 'http', port, protocol: 'HTTP', allowedRoutes: { namespaces }, ...(hostname && { hostname }) },
    ],
  });
const selecting = listeners(undefined, { from: 'Selector', selector: { matchLabels: { team: 'a' } } });
const targetOf = (name: string) => ({ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name });
const targeting = (kind: string, name: string) => ({
  targetRefs: [{ group: 'gateway.networking.k8s.io', kind, name }],
});
const zonePolicy = named(
  {
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'BackendTrafficPolicy',
    spec: {
      ...targeting('HTTPRoute', 'web'),
      loadBalancer: { type: 'RoundRobin', zoneAware: { preferLocal: {} } },
    },
  },
  'default/zones',
);
const policyOf = (name: string, spec: Fields = {}, ...routes: readonly string[]) => {
  const targetRefs = (routes.length > 0 ? routes : ['web']).flatMap(
    each => targeting('HTTPRoute', each).targetRefs,
  );
  const settings = { failover: { healthyPercent: 50 }, ...spec };
  return named(meshRoutePolicy({ ...settings, targetRefs }), `default/${name}`);
};
const levelsWith = (name: string) => [
  { backends: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web' }] },
  { backends: [{ group: '', kind: 'Service', name, port: 80 }] },
];
const services = (name: string, targetEndpoint: string) => ({
  serviceDiscovery: { vipServices: [{ name, port: 443, targetEndpoint }] },
});
const listenerSet = {
  ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'ListenerSet' },
  metadata: { name: 'web', namespace: 'default' },
  spec: { parentRef: { name: 'public' }, listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
};
const external = (name: string, externalTarget: string) => endpoint({ name, externalTarget });

describe('check finds nothing in', () => {
  it.each<readonly [string, readonly object[]]>([
    [
      'an endpoint with the CA of a ConfigMap',
      [
        ...good,
        named(
          meshEndpoints({ endpoints: [endpoint({ protocol: 'HTTPS', tls: { caRef: { name: 'ca' } } })] }),
          'default/tls',
        ),
        toBackends('default/tls', [meshBackend({ name: 'tls' })]),
      ],
    ],
    [
      'a reference without kind to a Service that has the name of a MeshEndpoints',
      [...good, service('default/web'), toBackends('default/plain', [toWeb])],
    ],
    [
      'a route to Services alone, whose parent does not exist',
      [
        ...good,
        service('default/near'),
        toBackends('default/near', [{ name: 'near', port: 80 }], { parentRefs: [{ name: 'pubic' }] }),
      ],
    ],
    [
      'a Gateway for namespaces with labels, where no Namespace is among the objects',
      [web(), tailnet, selecting, route('HTTPRoute', 'default/web')],
    ],
    [
      'a Gateway for namespaces with labels that the namespace has',
      [web(), tailnet, selecting, labelled('a'), route('HTTPRoute', 'default/web')],
    ],
    [
      'a route for all names of a domain, and a listener for one of them',
      [
        web(),
        tailnet,
        listeners('web.example.com'),
        toBackends('default/web', [meshBackend()], { hostnames: ['*.example.com'] }),
      ],
    ],
    [
      'a policy that prefers the zone, for rules of several backends',
      [
        ...[web(), tailnet, gateway, service('default/near'), zonePolicy],
        toBackends('default/web', [meshBackend(), { name: 'near', port: 80 }]),
      ],
    ],
    [
      'two endpoints of one device at two ports',
      [web({ endpoints: [endpoint(), endpoint({ name: 'b', port: 9090 })] }), tailnet],
    ],
    [
      'two external targets behind one address of the mesh',
      [web({ endpoints: [external('a', 'a.example.com:80'), external('b', 'b.example.com:80')] }), tailnet],
    ],
    [
      'a policy for a route that is elsewhere',
      [web(), tailnet, named(meshRoutePolicy(targeting('HTTPRoute', 'other')), 'default/p')],
    ],
    ['settings of a Gateway', [...good, named(meshGateway(targeting('Gateway', 'public')), 'default/g')]],
    [
      'VIP services of one name in two tailnets',
      [
        web(services('web', 'web')),
        named(
          meshEndpoints({
            ...{ tailnet: 'other.ts.net', endpoints: [endpoint({ meshFQDN: 'web.other.ts.net' })] },
            ...services('web', 'web'),
          }),
          'default/b',
        ),
        tailnet,
        named(meshTailnet({ tailnet: 'other.ts.net' }), 'other'),
      ],
    ],
    [
      'a VIP service of an endpoint that selectors may find',
      [web({ tagSelectors: [{ key: 'web', operator: 'Exists' }], ...services('web', 'found') }), tailnet],
    ],
  ])('%s', (_, objects) => expect(found(...objects)).toEqual([]));
});

describe('check finds', () => {
  it.each<readonly [string, readonly object[], string]>([
    [
      'a reference of kind Service to the name of a MeshEndpoints',
      [...good, service('default/near'), toBackends('default/plain', [{ ...toWeb, kind: 'Service' }])],
      'error KindMissing: spec.rules[0].backendRefs[0]: names a Service, and web is a MeshEndpoints',
    ],
    [
      'a reference without kind to a MeshEndpoints of the namespace of the route',
      [
        named(meshEndpoints(), 'far/web'),
        tailnet,
        gateway,
        toBackends('far/web', [toWeb], { parentRefs: [{ name: 'public', namespace: 'default' }] }),
      ],
      'error KindMissing: spec.rules[0].backendRefs[0]: names a Service, and web is a MeshEndpoints',
    ],
    [
      'the annotation of before, even without a value',
      [
        ...good.slice(0, 3),
        named(route('HTTPRoute', 'web'), 'default/web', {
          annotations: { 'mesh-gateway.dev/backend-type': '' },
        }),
      ],
      'error LegacyAnnotation: metadata.annotations: mesh-gateway.dev/backend-type has no effect any more: remove it',
    ],
    [
      'a Gateway for namespaces with labels that the namespace lacks',
      [web(), tailnet, selecting, labelled('b'), route('HTTPRoute', 'default/web')],
      'error NotAllowedByListeners: spec.parentRefs[0]: no listener of Gateway default/public admits routes of namespace default',
    ],
    [
      'a Gateway that is not valid once, not again in its routes',
      [web(), tailnet, listeners(undefined, undefined, 0), route('HTTPRoute', 'default/web')],
      'error Invalid: spec.listeners[0].port',
    ],
    [
      'a Gateway that is not valid once, not again in routes to a ListenerSet of it',
      [
        web(),
        tailnet,
        listeners(undefined, undefined, 0),
        listenerSet,
        toBackends('default/web', [meshBackend()], { parentRefs: [{ kind: 'ListenerSet', name: 'web' }] }),
      ],
      'error Invalid: spec.listeners[0].port',
    ],
    [
      'a policy for a route without MeshEndpoints',
      [
        ...[...good, service('default/near'), toBackends('default/near', [{ name: 'near', port: 80 }])],
        named(meshRoutePolicy(targeting('HTTPRoute', 'near')), 'default/p'),
      ],
      'error NoMeshEndpoints: spec.targetRefs[0]: HTTPRoute near has no MeshEndpoints among its backends, so this policy changes nothing: add one to backendRefs',
    ],
    [
      'a policy that selects no endpoint of a backend',
      [...good, policyOf('p', { endpoints: { require: { matchLabels: { tier: 'gold' } } } })],
      'error NoMatchingEndpoints: spec.rules[0].backendRefs[0]: spec.endpoints.require selects no endpoint of MeshEndpoints default/web',
    ],
    [
      'a level with a Service that does not exist, once for two routes',
      [
        ...[...good, toBackends('default/b', [meshBackend()]), service('default/near')],
        policyOf('p', { failover: { levels: levelsWith('gone') } }, 'web', 'b'),
      ],
      'error BackendNotFound: spec.failover.levels[1].backends[0]: Service default/gone:80 does not exist: create it',
    ],
    [
      'a second policy of one route',
      [...good, policyOf('p'), policyOf('q')],
      'error Conflicted: spec.targetRefs[0]: HTTPRoute web: MeshRoutePolicy p applies, which is older or names the rule: remove the target',
    ],
    [
      'a policy of a route whose only rule has another one, as its status does',
      [
        ...good.slice(0, 3),
        route('HTTPRoute', 'default/web', { rules: [{ name: 'all', backendRefs: [meshBackend()] }] }),
        policyOf('p'),
        named(meshRoutePolicy({ targetRefs: [{ ...targetOf('web'), sectionName: 'all' }] }), 'default/q'),
      ],
      'error Conflicted: spec.targetRefs[0]: HTTPRoute web: MeshRoutePolicy q applies, which is older or names the rule',
    ],
    [
      'a second MeshGateway of one Gateway',
      [
        ...good,
        named(meshGateway(targeting('Gateway', 'public')), 'default/a'),
        named(meshGateway(targeting('Gateway', 'public')), 'default/b'),
      ],
      'error Conflicted: spec.targetRefs[0]: MeshGateway default/a has Gateway public too',
    ],
    [
      'a second MeshTailnet of one domain',
      [...good, named(meshTailnet(), 'other')],
      'error Conflict: spec.tailnet: MeshTailnet example has the tailnet example.ts.net too',
    ],
    [
      'a rule in which all backends have weight 0',
      [...good.slice(0, 3), toBackends('default/web', [meshBackend({ weight: 0 })])],
      'warning NoWeight: spec.rules[0]: all backendRefs have weight 0: raise one',
    ],
    [
      'what is wrong with the first of two objects of one name alone',
      [...good, web({ endpoints: [endpoint({ port: 9090 })] })],
      'error Repeated: MeshEndpoints default/web is also in line 1',
    ],
  ])('%s', (_, objects, message) => {
    expect(found(...objects)).toEqual([expect.stringContaining(message)]);
  });

  it('the backendRefs that an annotation of before stood for, where their MeshEndpoints are elsewhere', () => {
    const annotations = { 'mesh-gateway.dev/backend-type': 'tailscale' };
    const ofOthers = { group: 'example.org', kind: 'Service', name: 'near' };
    const [finding] = found(named(toBackends('web', [ofOthers, toWeb]), 'default/web', { annotations }));
    expect(finding).toContain('remove it, and write as spec.rules[0].backendRefs[1]:');
  });

  it.each([
    [5, 'l0, l1, l2, l3, l4)'],
    [6, 'l0, l1, l2, l3, l4, ...)'],
  ])('a listener that does not exist, and names at most five of %i that do', (count, names) => {
    const all = Array.from({ length: count }, (_, at) => ({
      name: `l${at}`,
      port: 80 + at,
      protocol: 'HTTP',
    }));
    const parentRefs = [{ name: 'public', sectionName: 'other' }];
    const [finding] = found(
      ...[web(), tailnet, openGateway('default/public', { listeners: all })],
      toBackends('default/web', [meshBackend()], { parentRefs }),
    );
    expect(finding).toContain(`use one that it has (${names}`);
  });

  it('nothing about Services that could not be read, though their EndpointSlices could', () => {
    const backends = [meshBackend(), { name: 'near', port: 80 }];
    const objects = [...good.slice(0, 3), toBackends('default/web', backends)];
    const { findings } = check(servedObjects(objects, new Set<ResourceKind>(['EndpointSlice'])));
    expect(findings.filter(each => formatProblem(each).includes('backendRefs[1]'))).toEqual([]);
  });

  it('what objects of a cluster have in the order of their fields, since they have no lines', () => {
    const refs = [0, 1, 2].map(() => meshBackend({ weight: 0 }));
    const { findings } = check(
      servedObjects([...good.slice(0, 3), toBackends('default/web', refs)], new Set()),
    );
    expect(findings.filter(({ reason }) => reason === 'NoTraffic').map(formatProblem)).toEqual(
      [0, 1, 2].map(at => `spec.rules[0].backendRefs[${at}].weight: 0 means no traffic`),
    );
  });
});
