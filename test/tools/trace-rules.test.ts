import { describe, expect, it } from 'vitest';
import { meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints } from '../support/objects.ts';
import { all, firstBroken, gateway, routeOf, tailnet, ways, web } from '../support/tools/traced.ts';
import type { TraceOptions } from '../support/tools/traced.ts';

/** Rules of one route, named by their paths, headers and so on; each has a backend of its own weight. */
const rule = (...matches: readonly object[]) => ({ matches, backendRefs: [meshBackend()] });
const path = (value: string, type = 'PathPrefix') => ({ path: { type, value } });

const TWO_HEADERS = rule({
  headers: [
    { name: 'X', value: '1' },
    { name: 'Z', value: '2' },
  ],
});

const CHOICES: readonly (readonly [string, readonly object[], string, TraceOptions, number | undefined])[] = [
  ['an exact path before a prefix', [rule(path('/a')), rule(path('/a', 'Exact'))], '/a', {}, 1],
  [
    'a pattern before a prefix',
    [rule(path('/a/b')), rule(path('/a/.*', 'RegularExpression'))],
    '/a/b',
    {},
    1,
  ],
  ['the longer prefix', [rule(path('/a')), rule(path('/a/b')), rule(path('/'))], '/a/b/c', {}, 1],
  [
    'the longer prefix, written first',
    [rule(path('/a/b')), rule(path('/a')), rule(path('/'))],
    '/a/b/c',
    {},
    0,
  ],
  [
    'the longer pattern',
    [
      rule(path('/a/.*', 'RegularExpression')),
      rule(path('/a/b/.*', 'RegularExpression')),
      rule(path('/.*', 'RegularExpression')),
    ],
    '/a/b/c',
    {},
    1,
  ],
  ['no pattern of a part', [rule(path('/a|/b', 'RegularExpression'))], '/ab', {}, undefined],
  ['a prefix of whole elements', [rule(path('/ab')), rule(path('/a'))], '/a/b', {}, 1],
  ['no prefix of half an element', [rule(path('/a'))], '/ab', {}, undefined],
  ['a prefix with a slash at its end', [rule(path('/a/'))], '/a', {}, 0],
  ['the first of equal rules', [rule(path('/a')), rule(path('/a'))], '/a', {}, 0],
  [
    'more headers',
    [rule({ headers: [{ name: 'X', value: '1' }] }), TWO_HEADERS],
    '/',
    { headers: ['x: 1', 'z: 2'] },
    1,
  ],
  [
    'a path before headers',
    [rule({ headers: [{ name: 'X', value: '1' }] }), rule(path('/a'))],
    '/a',
    { headers: ['x: 1'] },
    1,
  ],
  ['a method before none', [rule(path('/')), rule({ method: 'POST' })], '/', { method: 'post' }, 1],
  [
    'a header with the right value',
    [rule({ headers: [{ name: 'X', value: '1' }] }), rule({ headers: [{ name: 'X', value: '2' }] })],
    '/',
    { headers: ['x: 2'] },
    1,
  ],
  [
    'a header by pattern',
    [rule({ headers: [{ name: 'X', value: 'v[0-9]', type: 'RegularExpression' }] })],
    '/',
    { headers: ['x: v2'] },
    0,
  ],
  [
    'an exact header before one by pattern',
    [
      rule({ headers: [{ name: 'X', value: '.', type: 'RegularExpression' }] }),
      rule({ headers: [{ name: 'X', value: '1' }] }),
    ],
    '/',
    { headers: ['x: 1'] },
    1,
  ],
  [
    'an exact query parameter before one by pattern',
    [
      rule({ queryParams: [{ name: 'a', value: '.', type: 'RegularExpression' }] }),
      rule({ queryParams: [{ name: 'a', value: '1' }] }),
    ],
    '/?a=1',
    {},
    1,
  ],
  [
    'by the first of two headers whose names differ in case alone',
    [
      rule({
        headers: [
          { name: 'X', value: '1' },
          { name: 'x', value: '2' },
        ],
      }),
    ],
    '/',
    { headers: ['x: 1'] },
    0,
  ],
  [
    'headers before query parameters',
    [rule({ queryParams: [{ name: 'a', value: '1' }] }), rule({ headers: [{ name: 'X', value: '1' }] })],
    '/?a=1',
    { headers: ['x: 1'] },
    1,
  ],
  [
    'more query parameters',
    [
      rule({ queryParams: [{ name: 'a', value: '1' }] }),
      rule({
        queryParams: [
          { name: 'a', value: '1' },
          { name: 'b', value: '2' },
        ],
      }),
    ],
    '/?a=1&b=2',
    {},
    1,
  ],
  ['one of several matches', [rule(path('/a')), rule(path('/b'), path('/c'))], '/c', {}, 1],
  [
    'no pattern that takes for ever',
    [rule(path('/(a+)+!', 'RegularExpression'))],
    `/${'a'.repeat(40)}`,
    {},
    undefined,
  ],
  ['no pattern that cannot be read', [rule(path('/(', 'RegularExpression'))], '/(', {}, undefined],
  [
    'a pattern before a longer prefix',
    [rule(path('/a/b/c')), rule(path('/a/.*', 'RegularExpression'))],
    '/a/b/c',
    {},
    1,
  ],
  [
    'an exact path before a longer pattern',
    [rule(path('/a[a-z]?[a-z]?', 'RegularExpression')), rule(path('/ab', 'Exact'))],
    '/ab',
    {},
    1,
  ],
  [
    'two headers before a method',
    [rule({ method: 'GET' }), TWO_HEADERS],
    '/',
    { headers: ['x: 1', 'z: 2'] },
    1,
  ],
  [
    'no header by pattern that is missing',
    [rule({ headers: [{ name: 'X', value: '.*', type: 'RegularExpression' }] })],
    '/',
    {},
    undefined,
  ],
  [
    'an exact header as it is, and not as a pattern',
    [rule({ headers: [{ name: 'X', value: 'a.b' }] })],
    '/',
    { headers: ['x: axb'] },
    undefined,
  ],
];

describe('trace chooses', () => {
  it.each(CHOICES)('%s', (_, rules, target, options, expected) => {
    const [steps = []] = ways([...all, routeOf({ rules })], `http://a${target}`, options);
    const [, chosen] = /^ok rule: spec\.rules\[(\d+)\]/.exec(steps[1] ?? '') ?? [];
    expect(chosen === undefined ? undefined : Number(chosen)).toBe(expected);
  });

  it('a rule, and shows what the request matches in it', () => {
    const match = {
      ...{ method: 'POST', ...path('/a/') },
      ...{ headers: [{ name: 'X', value: '1' }], queryParams: [{ name: 'q', value: '2' }] },
    };
    const objects = [...all, routeOf({ rules: [rule(match)] })];
    const [steps = []] = ways(objects, 'http://a/a?q=2', { method: 'POST', headers: ['x: 1'] });
    expect(steps[1]).toMatch(/: POST, path prefix \/a, header X: 1, query q=2$/);
  });

  it('the closest hostname, and looks at the rules of no other', () => {
    const wide = named(routeOf({ hostnames: ['*.example.com'] }), 'default/wide');
    const close = named(
      routeOf({ hostnames: ['web.example.com'], rules: [rule(path('/a'))] }),
      'default/close',
    );
    const objects = [...all, wide, close];
    expect(ways(objects, 'http://web.example.com/a')[0]?.[1]).toContain('HTTPRoute default/close');
    expect(ways(objects, 'http://api.example.com/a')[0]?.[1]).toContain('HTTPRoute default/wide');
    expect(firstBroken(objects, 'http://web.example.com/b')[0]).toContain('no rule for web.example.com');
  });

  it('among rules of all hostnames that are as wide as that of the listener, or wider', () => {
    const listeners = [{ name: 'http', port: 80, protocol: 'HTTP', hostname: 'web.example.com' }];
    const any = named(routeOf({ rules: [rule(path('/a'))] }), 'default/any');
    const wide = named(routeOf({ hostnames: ['*.example.com'] }), 'default/wide');
    const objects = [web, tailnet, openGateway('default/public', { listeners }), any, wide];
    expect(ways(objects, 'http://web.example.com/a')[0]?.[1]).toContain('HTTPRoute default/any');
    expect(ways(objects, 'http://web.example.com/b')[0]?.[1]).toContain('HTTPRoute default/wide');
  });

  it('the listener of the closest hostname', () => {
    const http = { port: 80, protocol: 'HTTP' };
    const listeners = [
      { ...http, name: 'any' },
      { ...http, name: 'wide', hostname: '*.example.com' },
      { ...http, name: 'close', hostname: 'web.example.com' },
    ];
    const objects = [web, tailnet, openGateway('default/public', { listeners }), routeOf({})];
    const chosen = ['web.example.com', 'api.example.com', 'example.com'].map(
      host => ways(objects, `http://${host}/`)[0]?.[0],
    );
    expect(chosen).toEqual(
      ['close', 'wide', 'any'].map(name => `ok listener: ${name} (HTTP, port 80) of Gateway default/public`),
    );
  });

  it('the older of two routes with equal rules', () => {
    const aged = (name: string, creationTimestamp: string) =>
      named(routeOf({}), `default/${name}`, { creationTimestamp });
    const objects = [...all, aged('a', '2026-02-01T00:00:00Z'), aged('b', '2026-01-01T00:00:00Z')];
    expect(ways(objects, 'http://a/')[0]?.[1]).toContain('HTTPRoute default/b');
  });

  it('the older of two TCPRoutes, as Envoy Gateway uses one of a listener', () => {
    const aged = (name: string, creationTimestamp: string) =>
      named(route('TCPRoute', name), `default/${name}`, { creationTimestamp });
    const endpoints = named(meshEndpoints({ endpoints: [endpoint({ protocol: 'TCP' })] }), 'default/web');
    const routes = [aged('a', '2026-02-01T00:00:00Z'), aged('b', '2026-01-01T00:00:00Z')];
    expect(ways([endpoints, tailnet, gateway, ...routes], 'a:82')[0]?.[1]).toContain('TCPRoute default/b');
  });

  it('one that is applied before one that is not yet', () => {
    const applied = named(routeOf({}), 'default/b', { creationTimestamp: '2026-02-01T00:00:00Z' });
    const objects = [...all, named(routeOf({}), 'default/a'), applied];
    expect(ways(objects, 'http://a/')[0]?.[1]).toContain('HTTPRoute default/b');
  });

  it.each([
    ['HTTPRoute', 'http://a/'],
    ['TCPRoute', 'a:82'],
  ] as const)('the first by name of two %ss of one age', (kind, target) => {
    const protocol = kind === 'TCPRoute' ? 'TCP' : 'HTTP';
    const endpoints = named(meshEndpoints({ endpoints: [endpoint({ protocol })] }), 'default/web');
    const routes = ['b', 'a'].map(name => route(kind, `default/${name}`));
    expect(ways([endpoints, tailnet, gateway, ...routes], target)[0]?.[1]).toContain(`${kind} default/a`);
  });

  it('the first by namespace, and then by name, of routes of one age', () => {
    const parentRefs = [{ name: 'public', namespace: 'default' }];
    const routes = ['infra/a', 'default/c', 'default/b'].map(name => named(routeOf({ parentRefs }), name));
    for (const inOrder of [routes, routes.toReversed()])
      expect(ways([...all, ...inOrder], 'http://a/')[0]?.[1]).toContain('HTTPRoute default/b');
  });

  it('methods of GRPCRoutes by pattern', () => {
    const pattern = (method: object) => ({
      matches: [{ method: { type: 'RegularExpression', ...method } }],
      backendRefs: [meshBackend()],
    });
    const rules = [pattern({ service: 'w.*' }), pattern({ service: 'x', method: 'Sa.' })];
    const endpoints = named(meshEndpoints({ endpoints: [endpoint({ protocol: 'gRPC' })] }), 'default/web');
    const objects = [endpoints, tailnet, gateway, route('GRPCRoute', 'default/web', { rules })];
    const chosen = ['/web.Echo/Say', '/x/Say', '/x/Other'].map(
      path => /rules\[(\d)\]/.exec(ways(objects, `http://a${path}`, { method: 'POST' })[0]?.[1] ?? '')?.[1],
    );
    expect(chosen).toEqual(['0', '1', undefined]);
  });

  it('methods and services of GRPCRoutes', () => {
    const web = { service: 'web.Echo' };
    const methods = [{}, web, { ...web, method: 'Say' }, { method: 'Sing' }];
    const rules = methods.map(method => ({
      ...(Object.keys(method).length > 0 && { matches: [{ method }] }),
      backendRefs: [meshBackend()],
    }));
    const endpoints = named(meshEndpoints({ endpoints: [endpoint({ protocol: 'gRPC' })] }), 'default/web');
    const objects = [endpoints, tailnet, gateway, route('GRPCRoute', 'default/web', { rules })];
    const chosen = [
      ...['/web.Echo/Say', '/web.Echo/Other', '/other.Echo/Say', '/web-Echo/Say', '/web-Echo/Other'],
      '/other.Echo/Sing',
    ].map(
      path => /rules\[(\d)\]/.exec(ways(objects, `http://a${path}`, { method: 'POST' })[0]?.[1] ?? '')?.[1],
    );
    expect(chosen).toEqual(['2', '1', '0', '0', '0', '3']);
  });
});

it('a rule that redirects sends nothing to a backend, and is right', () => {
  const redirect = { filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https' } }] };
  const [steps = []] = ways([...all, routeOf({ rules: [redirect] })], 'http://a/');
  expect(steps.slice(1)).toEqual([
    'ok rule: spec.rules[0] of HTTPRoute default/web: any path',
    'ok answer: a redirect, by the filter RequestRedirect',
  ]);
});

it('a rule with a filter of Envoy Gateway needs no backends, since that may answer, as by directResponse', () => {
  const extensionRef = { group: 'gateway.envoyproxy.io', kind: 'HTTPRouteFilter', name: 'teapot' };
  const filters = [{ type: 'ExtensionRef', extensionRef }];
  const answer = 'ok answer: by an HTTPRouteFilter (not followed further)';
  const lastOf = (rule: object) => ways([...all, routeOf({ rules: [rule] })], 'http://a/')[0]?.at(-1);
  expect(lastOf({ filters })).toBe(answer);
  expect(lastOf({ filters, backendRefs: [meshBackend()] })).not.toBe(answer);
  expect(
    lastOf({ filters: [{ type: 'ExtensionRef', extensionRef: { ...extensionRef, kind: 'Other' } }] }),
  ).toMatch(/^broken backend: .*has no backendRefs/);
});
