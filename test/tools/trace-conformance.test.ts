import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { readObjects } from '../../src/tools/check/objects.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';

/**
 * What tests of Gateway API's conformance suite prove of the choice of rules, under their names: for each request the rule that
 * gets it. Envoy Gateway passes them, so that trace must decide the same.
 */
const pool = { mode: 'External', addresses: ['10.0.0.1:1055'] };
const BACKENDS = [
  named(meshTailnet({ pool }), 'example'),
  named(meshEndpoints(), 'default/web'),
  named(meshEndpoints({ endpoints: [endpoint({ protocol: 'gRPC' })] }), 'default/grpc'),
];

/** The rule that gets a request, such as web 0; undefined where none does. */
function chosenFor(objects: readonly object[], request: string): string | undefined {
  const [method = '', url = '', ...headers] = request.split(' ');
  const text = [...BACKENDS, ...objects].map(object => stringify(object)).join('---\n');
  const parsed = parseRequest(`http://${url}`, {
    method,
    headers: headers.map(each => each.replace('=', ': ')),
  });
  const steps = trace(readObjects([{ name: 'all.yaml', text }]), parsed, undefined).flatMap(way => way.steps);
  const chosen = steps.find(({ name, is }) => name === 'rule' && is === 'ok')?.text ?? '';
  const [, rule, name] = /^spec\.rules\[(\d+)\] of \w+ default\/([\w-]+)/.exec(chosen) ?? [];
  return rule === undefined ? undefined : `${name} ${rule}`;
}

const path = (value: string, type = 'PathPrefix') => ({ path: { type, value } });
const headers = (all: Readonly<Record<string, string>>) => ({ headers: pairs(all) });
const query = (all: Readonly<Record<string, string>>) => ({ queryParams: pairs(all) });
const pairs = (all: Readonly<Record<string, string>>) =>
  Object.entries(all).map(([name, value]) => ({ name, value }));
const to =
  (name: string) =>
  (...matches: readonly object[]) => ({ matches, backendRefs: [meshBackend({ name })] });
const [rule, grpcRule] = [to('web'), to('grpc')];
const service = 'suite.Echo';

type Case = readonly [
  test: string,
  kind: 'HTTPRoute' | 'GRPCRoute',
  rules: readonly object[],
  chosen: object,
];

const CASES: readonly Case[] = [
  [
    'HTTPRouteMatching',
    'HTTPRoute',
    [rule(path('/'), headers({ version: 'one' })), rule(path('/v2'), headers({ version: 'two' }))],
    {
      ...{ 'GET a/': 0, 'GET a/more': 0, 'GET a/ Version=one': 0, 'GET a/v2': 1, 'GET a/v2/more': 1 },
      ...{ 'GET a/ Version=two': 1, 'GET a/v2/': 1, 'GET a/v2more': 0, 'GET a/more/v2': 0 },
    },
  ],
  [
    'HTTPRouteExactPathMatching',
    'HTTPRoute',
    [rule(path('/one', 'Exact')), rule(path('/two', 'Exact'))],
    {
      ...{ 'GET a/one': 0, 'GET a/two': 1, 'GET a/': undefined, 'GET a/one/more': undefined },
      ...{ 'GET a/two/': undefined, 'GET a/Two': undefined },
    },
  ],
  [
    'HTTPRoutePathMatchOrder',
    'HTTPRoute',
    [
      ...['/m', '/m/exact', '/m/exact/one'].map(value => rule(path(value, 'Exact'))),
      ...['/m/', '/m/prefix/', '/m/prefix/one'].map(value => rule(path(value))),
    ],
    {
      ...{ 'GET a/m/exact/one': 2, 'GET a/m/exact': 1, 'GET a/m': 0, 'GET a/m/prefix/one/more': 5 },
      ...{ 'GET a/m/prefix/more': 4, 'GET a/m/more': 3 },
    },
  ],
  [
    'HTTPRouteHeaderMatching',
    'HTTPRoute',
    [
      rule(headers({ version: 'one' })),
      rule(headers({ version: 'two' })),
      rule(headers({ version: 'two', color: 'orange' })),
      rule(headers({ color: 'blue' }), headers({ color: 'green' })),
    ],
    {
      ...{ 'GET a/ Version=one': 0, 'GET a/ Version=two': 1, 'GET a/ Version=two Color=orange': 2 },
      ...{
        'GET a/ Version=two Color=blue': 1,
        'GET a/ Color=orange': undefined,
        'GET a/ Other=one': undefined,
      },
      ...{ 'GET a/ Color=blue': 3, 'GET a/ Color=green': 3, 'GET a/ Color=purple': undefined },
    },
  ],
  [
    'HTTPRouteMethodMatching',
    'HTTPRoute',
    [
      rule({ method: 'POST' }),
      rule({ method: 'GET' }),
      rule({ ...path('/1'), method: 'GET' }),
      rule({ ...headers({ version: 'one' }), method: 'PUT' }),
      rule(
        { ...path('/3'), method: 'PATCH' },
        { ...path('/4'), ...headers({ version: 'three' }), method: 'DELETE' },
      ),
      rule(path('/5')),
      rule({ method: 'PATCH' }),
      rule(headers({ version: 'four' })),
    ],
    {
      ...{ 'POST a/': 0, 'GET a/': 1, 'HEAD a/': undefined, 'GET a/1': 2, 'PUT a/ Version=one': 3 },
      ...{ 'PATCH a/3': 4, 'DELETE a/4 Version=three': 4, 'PUT a/': undefined, 'DELETE a/4': undefined },
      ...{ 'PATCH a/5': 5, 'PATCH a/ Version=four': 6 },
    },
  ],
  [
    'HTTPRouteQueryParamMatching',
    'HTTPRoute',
    [
      rule(query({ animal: 'whale' })),
      rule(query({ animal: 'dolphin' })),
      rule(query({ animal: 'dolphin', color: 'blue' }), query({ ANIMAL: 'Whale' })),
      rule({ ...path('/1'), ...query({ animal: 'whale' }) }),
      rule({ ...headers({ version: 'one' }), ...query({ animal: 'whale' }) }),
      rule(path('/5')),
      rule(query({ animal: 'hydra' })),
      rule(headers({ version: 'four' })),
    ],
    {
      ...{ 'GET a/?animal=whale': 0, 'GET a/?animal=dolphin': 1, 'GET a/?animal=dolphin&color=blue': 2 },
      ...{ 'GET a/?ANIMAL=Whale': 2, 'GET a/?animal=whale&other=1': 0, 'GET a/?color=blue': undefined },
      ...{ 'GET a/?animal=dog': undefined, 'GET a/?animal=whaledolphin': undefined, 'GET a/': undefined },
      ...{ 'GET a/1?animal=whale': 3, 'GET a/?animal=whale Version=one': 4, 'GET a/5?animal=hydra': 5 },
      ...{ 'GET a/?animal=hydra Version=four': 7 },
    },
  ],
  [
    'GRPCExactMethodMatching',
    'GRPCRoute',
    [grpcRule({ method: { service, method: 'One' } }), grpcRule({ method: { service, method: 'Two' } })],
    { 'POST a/suite.Echo/One': 0, 'POST a/suite.Echo/Two': 1, 'POST a/suite.Echo/Three': undefined },
  ],
  [
    'GRPCRouteHeaderMatching',
    'GRPCRoute',
    [
      grpcRule(headers({ version: 'one' })),
      grpcRule(headers({ version: 'two' })),
      grpcRule(headers({ version: 'two', color: 'orange' })),
    ],
    {
      'POST a/suite.Echo/One Version=one': 0,
      'POST a/suite.Echo/One Version=two Color=orange': 2,
      'POST a/suite.Echo/One Color=purple': undefined,
    },
  ],
];

describe('trace decides as the conformance suite in', () => {
  it.each(CASES)('%s', (_, kind, rules, chosen) => {
    const objects = [openGateway('default/public'), route(kind, 'default/only', { rules })];
    const found = Object.keys(chosen).map(request => [request, chosenFor(objects, request)] as const);
    const expected = Object.entries(chosen).map(([request, at]) => [
      request,
      at === undefined ? undefined : `only ${at}`,
    ]);
    expect(found).toEqual(expected);
  });
});

const listener = (name: string, hostname?: string) => ({
  ...{ name, port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
  ...(hostname !== undefined && { hostname }),
});
const gatewayWith = (...listeners: readonly object[]) =>
  gatewayObject('Gateway', 'default/public', { gatewayClassName: 'mesh', listeners });
const routeAt = (name: string, section: string | undefined, spec: object) =>
  route('HTTPRoute', `default/${name}`, {
    parentRefs: [{ name: 'public', ...(section !== undefined && { sectionName: section }) }],
    ...spec,
  });

const ACROSS: readonly (readonly [string, readonly object[], object])[] = [
  [
    'HTTPRouteMatchingAcrossRoutes',
    [
      gatewayWith(listener('http')),
      routeAt('one', undefined, {
        hostnames: ['a.com', 'a.net'],
        rules: [rule(path('/'), headers({ version: 'one' }))],
      }),
      routeAt('two', undefined, {
        hostnames: ['a.com'],
        rules: [rule(path('/v2'), headers({ version: 'two' }))],
      }),
    ],
    {
      ...{
        'GET a.com/': 'one 0',
        'GET a.com/more': 'one 0',
        'GET a.net/more': 'one 0',
        'GET a.com/v2': 'two 0',
      },
      ...{ 'GET a.net/v2': 'one 0', 'GET a.com/v2/more': 'two 0', 'GET a.com/ Version=two': 'two 0' },
    },
  ],
  [
    'HTTPRouteListenerHostnameMatching',
    [
      gatewayWith(
        ...[listener('1', 'bar.com'), listener('2', 'foo.bar.com'), listener('3', '*.bar.com')],
        listener('4', '*.foo.com'),
      ),
      routeAt('one', '1', {}),
      routeAt('two', '2', {}),
      route('HTTPRoute', 'default/three', {
        parentRefs: ['3', '4'].map(sectionName => ({ name: 'public', sectionName })),
      }),
    ],
    {
      ...{ 'GET bar.com/': 'one 0', 'GET foo.bar.com/': 'two 0', 'GET baz.bar.com/': 'three 0' },
      ...{ 'GET two.names.bar.com/': 'three 0', 'GET two.names.foo.com/': 'three 0' },
      ...{ 'GET foo.com/': undefined, 'GET other.host/': undefined },
    },
  ],
  [
    'HTTPRouteHostnameIntersection',
    [
      gatewayWith(
        listener('1', 'very.specific.com'),
        listener('2', '*.wild.io'),
        listener('3', '*.other.io'),
      ),
      routeAt('one', undefined, {
        hostnames: ['no.com', '*.no.io', 'very.specific.com'],
        rules: [rule(path('/1'))],
      }),
      routeAt('two', undefined, {
        hostnames: ['no.com', 'wild.io', 'a.wild.io', 'a.b.wild.io'],
        rules: [rule(path('/2'))],
      }),
      routeAt('three', undefined, { hostnames: ['no.com', '*.specific.com'], rules: [rule(path('/3'))] }),
      routeAt('four', undefined, { hostnames: ['*.other.io'], rules: [rule(path('/4'))] }),
    ],
    {
      ...{
        'GET very.specific.com/1': 'one 0',
        'GET very.specific.com/1 Host=very.specific.com:1234': 'one 0',
      },
      ...{ 'GET no.com/1': undefined, 'GET a.no.io/1': undefined, 'GET a.wild.io/1': undefined },
      ...{
        'GET very.specific.com/other': undefined,
        'GET a.wild.io/2': 'two 0',
        'GET a.b.wild.io/2': 'two 0',
      },
      ...{
        'GET wild.io/2': undefined,
        'GET very.specific.com/2': undefined,
        'GET very.specific.com/3': 'three 0',
      },
      ...{
        'GET foo.specific.com/3': undefined,
        'GET a.other.io/4': 'four 0',
        'GET a.b.other.io/4': 'four 0',
      },
    },
  ],
  [
    'GatewayHTTPListenerIsolation',
    [
      gatewayWith(
        ...[listener('any'), listener('wide', '*.a.com'), listener('close', '*.b.a.com')],
        listener('exact', 'c.b.a.com'),
      ),
      ...['any', 'wide', 'close', 'exact'].map(name =>
        routeAt(name, name, { rules: [rule(path(`/${name}`))] }),
      ),
    ],
    {
      ...{ 'GET x.com/any': 'any 0', 'GET x.com/wide': undefined, 'GET x.a.com/any': undefined },
      ...{ 'GET x.a.com/wide': 'wide 0', 'GET x.b.a.com/wide': undefined, 'GET x.b.a.com/close': 'close 0' },
      ...{
        'GET c.b.a.com/close': undefined,
        'GET c.b.a.com/exact': 'exact 0',
        'GET c.b.a.com/any': undefined,
      },
    },
  ],
];

describe('trace decides across routes and listeners as the conformance suite in', () => {
  it.each(ACROSS)('%s', (_, objects, chosen) => {
    const found = Object.keys(chosen).map(request => [request, chosenFor(objects, request)] as const);
    expect(found).toEqual(Object.entries(chosen));
  });
});
