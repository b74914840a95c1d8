import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ROUTE_KINDS } from '../../src/api/key.ts';
import type { ResourceKind } from '../../src/api/key.ts';
import { readObjects, servedObjects } from '../../src/tools/check/objects.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import type { Step } from '../../src/tools/trace/trace.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../support/objects.ts';

const tailnet = named(meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), 'example');
const web = named(meshEndpoints(), 'default/web');
const gateway = openGateway('default/public');
const all = [web, tailnet, gateway];

type Options = { readonly method?: string; readonly headers?: readonly string[]; readonly from?: string };

/** The steps of each way of a request, as lines. */
function ways(
  objects: readonly object[],
  target: string,
  { method = 'GET', headers = [], from }: Options = {},
) {
  const text = objects.map(object => stringify(object)).join('---\n');
  const request = parseRequest(target, { method, headers });
  const found = trace(readObjects([{ name: 'all.yaml', text }]), request, from);
  return found.map(({ steps }) => steps.map(step => `${step.is} ${step.name}: ${step.text}`));
}

const firstBroken = (...args: Parameters<typeof ways>) =>
  ways(...args).flatMap(steps => steps.find(line => line.startsWith('broken')) ?? []);

describe('trace does not know what becomes of a request', () => {
  it.each<readonly [string, ReadonlySet<ResourceKind>, readonly Step[]]>([
    [
      'where Gateways could not be read',
      new Set(ROUTE_KINDS),
      [{ is: 'unknown', name: 'gateway', text: 'you have no right to list Gateways in all namespaces' }],
    ],
    [
      'where routes could not be read',
      new Set<ResourceKind>(['Gateway', 'GRPCRoute']),
      [
        { is: 'ok', name: 'listener', text: 'http (HTTP, port 80) of Gateway default/public' },
        { is: 'unknown', name: 'rule', text: 'you have no right to list HTTPRoutes in all namespaces' },
      ],
    ],
  ])('%s', (_, complete, steps) => {
    const served = servedObjects(complete.has('Gateway') ? [gateway] : [], complete);
    const request = parseRequest('http://web.example.com/', { method: 'GET', headers: [] });
    expect(trace(served, request, undefined).map(way => way.steps)).toEqual([steps]);
  });
});

describe('trace follows a request', () => {
  it('from the listener to the device', () => {
    expect(ways([...all, route('HTTPRoute', 'default/web')], 'http://web.example.com/')).toEqual([
      [
        'ok listener: http (HTTP, port 80) of Gateway default/public',
        'ok rule: spec.rules[0] of HTTPRoute default/web: any path',
        'ok backend: MeshEndpoints default/web, port 8080',
        'ok endpoint: web at 100.64.0.1:8080: HEALTHY',
        'ok mesh pod: 10.0.0.1:1055 of MeshTailnet example',
        'ok device: web.example.ts.net',
      ],
    ]);
  });

  it('by weights to several backends, and leaves out those without one', () => {
    const refs = [
      meshBackend({ weight: 3 }),
      { name: 'near', port: 80, weight: 1 },
      meshBackend({ weight: 0 }),
    ];
    const steps = ways(
      [...all, route('HTTPRoute', 'default/web', { rules: [{ backendRefs: refs }] })],
      'http://a/',
    );
    expect(steps[0]?.filter(line => line.includes(' backend: '))).toEqual([
      'ok backend: MeshEndpoints default/web, port 8080, 75 percent',
      'ok backend: Service default/near, port 80, 25 percent (not followed further)',
    ]);
  });

  it('to the endpoints that can be used, and names those that cannot', () => {
    const endpoints = [endpoint(), endpoint({ name: 'b', protocol: 'TCP' })];
    const [steps = []] = ways(
      [
        named(meshEndpoints({ endpoints }), 'default/web'),
        tailnet,
        gateway,
        route('HTTPRoute', 'default/web'),
      ],
      'http://a/',
    );
    expect(steps.slice(2, 5)).toEqual([
      'ok backend: MeshEndpoints default/web, port 8080',
      expect.stringMatching(/^broken endpoint: b: /),
      'ok endpoint: web at 100.64.0.1:8080: HEALTHY',
    ]);
  });

  it('to one backend while another one of the rule cannot be used', () => {
    const rules = [{ backendRefs: [meshBackend(), meshBackend({ port: 81 })] }];
    const [steps = []] = ways([...all, route('HTTPRoute', 'default/web', { rules })], 'http://a/');
    expect(steps.filter(line => line.includes(' backend: ')).map(line => line.slice(0, 58))).toEqual([
      'ok backend: MeshEndpoints default/web, port 8080, 50 perce',
      'broken backend: MeshEndpoints default/web, port 81, 50 per',
    ]);
  });

  it.each([
    [16, []],
    [17, ['ok endpoint: and 1 more']],
  ])('to the first 16 of %i endpoints', (count, more) => {
    const endpoints = Array.from({ length: count }, (_, at) =>
      endpoint({ name: `e${at}`, meshIP: `100.64.0.${at + 1}` }),
    );
    const objects = [named(meshEndpoints({ endpoints }), 'default/web'), tailnet, gateway];
    const [steps = []] = ways([...objects, route('HTTPRoute', 'default/web')], 'http://a/');
    const shown = steps.filter(line => line.includes(' endpoint: '));
    expect([shown.length, shown.slice(16)]).toEqual([16 + more.length, more]);
  });

  it('through each Gateway that has a listener for it, or through one', () => {
    const other = openGateway('infra/other');
    const parentRefs = [{ name: 'public' }, { name: 'other', namespace: 'infra' }];
    const objects = [...all, other, route('HTTPRoute', 'default/web', { parentRefs })];
    expect(ways(objects, 'http://a/').map(([first]) => first)).toEqual([
      'ok listener: http (HTTP, port 80) of Gateway default/public',
      'ok listener: http (HTTP, port 80) of Gateway infra/other',
    ]);
    expect(ways(objects, 'http://a/').map(steps => steps.at(-1))).toEqual(
      Array<string>(2).fill('ok device: web.example.ts.net'),
    );
    expect(ways(objects, 'http://a/', { from: 'infra/other' })).toHaveLength(1);
  });

  it('through the Gateway of a ListenerSet alone', () => {
    const http = { name: 'web', port: 8080, protocol: 'HTTP' };
    const allowedListeners = { namespaces: { from: 'All' } };
    const other = openGateway('default/other', { listeners: [{ ...http, port: 80 }], allowedListeners });
    const set = gatewayObject('ListenerSet', 'default/set', {
      ...{ parentRef: { name: 'other' }, listeners: [http] },
    });
    const parentRefs = [{ name: 'public' }, { kind: 'ListenerSet', name: 'set' }];
    const objects = [...all, other, set, route('HTTPRoute', 'default/web', { parentRefs })];
    expect(ways(objects, 'http://a:8080/').map(([first]) => first)).toEqual([
      'ok listener: web (HTTP, port 8080) of Gateway default/other',
    ]);
  });

  it('through one mesh pod to each endpoint', () => {
    const addresses = ['10.0.0.1:1055', '10.0.0.2:1055'];
    const endpoints = [1, 2, 3, 4, 5, 6].map(at => endpoint({ name: `e${at}`, meshIP: `100.64.0.${at}` }));
    const objects = [
      ...[named(meshEndpoints({ endpoints }), 'default/web'), gateway, route('HTTPRoute', 'default/web')],
      named(meshTailnet({ pool: { mode: 'External', addresses } }), 'example'),
    ];
    const [steps = []] = ways(objects, 'http://a/');
    const pods = steps.filter(line => line.includes(' mesh pod: '));
    expect(pods).toHaveLength(6);
    expect([...new Set(pods)].sort()).toEqual(
      addresses.map(address => `ok mesh pod: ${address} of MeshTailnet example`),
    );
  });

  it.each([
    ['TCPRoute', 'a:82', 'TCP'],
    ['UDPRoute', 'a:83', 'UDP'],
    ['TLSRoute', 'web.example.com:81', 'TLS'],
    ['TLSRoute', 'https://web.example.com:81/', 'TLS'],
  ] as const)('of a %s to %s', (kind, target, protocol) => {
    const endpoints = named(meshEndpoints({ endpoints: [endpoint({ protocol })] }), 'default/web');
    const [steps = []] = ways([endpoints, tailnet, gateway, route(kind, 'default/web')], target);
    expect(steps[1]).toBe(`ok rule: spec.rules[0] of ${kind} default/web`);
  });
});

const routeOf = (spec: Readonly<Record<string, unknown>>) => route('HTTPRoute', 'default/web', spec);

describe('trace names the step that is broken:', () => {
  it.each<readonly [string, readonly object[], string, string]>([
    ['no Gateway', [web, tailnet], 'http://a/', 'broken gateway: there is no Gateway'],
    [
      'no listener',
      all,
      'http://a:8080/',
      'broken listener: no listener is for HTTP at port 8080 for a: add one, or use what there is: http of default/public (HTTP at port 80)',
    ],
    ['no route', all, 'http://a/', 'broken rule: no route attaches to it'],
    [
      'no hostname',
      [...all, routeOf({ hostnames: ['b'] })],
      'http://a/',
      'broken rule: no route is for a: add it to hostnames of one: they have b (HTTPRoute default/web)',
    ],
    [
      'no rule',
      [...all, routeOf({ rules: [{ matches: [{ path: { value: '/b' } }], backendRefs: [meshBackend()] }] })],
      'http://a/',
      'broken rule: no rule for a matches GET / (404): they match "path prefix /b"',
    ],
    [
      'no backend',
      [...all, routeOf({ rules: [{}] })],
      'http://a/',
      'broken backend: spec.rules[0] has no backendRefs',
    ],
    [
      'no weight',
      [...all, routeOf({ rules: [{ backendRefs: [meshBackend({ weight: 0 })] }] })],
      'http://a/',
      'broken backend: all backendRefs of spec.rules[0] have weight 0',
    ],
    [
      'no port',
      [...all, routeOf({ rules: [{ backendRefs: [meshBackend({ port: 81 })] }] })],
      'http://a/',
      'broken backend: MeshEndpoints default/web, port 81: PortNotFound',
    ],
    [
      'no grant',
      [
        ...all,
        named(web, 'far/web'),
        routeOf({ rules: [{ backendRefs: [meshBackend({ namespace: 'far' })] }] }),
      ],
      'http://a/',
      'broken backend: MeshEndpoints far/web, port 8080: RefNotPermitted',
    ],
    [
      'an unhealthy endpoint',
      [
        named(
          {
            ...meshEndpoints({ endpoints: [endpoint({ healthCheck: { enabled: true } })] }),
            status: {
              endpoints: [
                {
                  name: 'web',
                  status: 'Unhealthy',
                  address: '100.64.0.1:8080',
                  meshFQDN: 'web.example.ts.net',
                  protocol: 'HTTP',
                  port: 8080,
                  error: 'connection refused',
                  reason: 'CheckFailed',
                },
              ],
            },
          },
          'default/web',
        ),
        tailnet,
        gateway,
        routeOf({}),
      ],
      'http://a/',
      'broken endpoint: web at 100.64.0.1:8080: UNHEALTHY: connection refused',
    ],
    [
      'no mesh pod',
      [web, named({ ...meshTailnet(), status: { conditions: [] } }, 'example'), gateway, routeOf({})],
      'http://a/',
      'broken mesh pod: MeshTailnet example: it has no condition PoolReady',
    ],
  ])('%s', (_, objects, target, text) => {
    expect(firstBroken(objects, target)).toEqual([expect.stringContaining(text)]);
  });
});

/** Rules of one route, named by their paths, headers and so on; each has a backend of its own weight. */
const rule = (...matches: readonly object[]) => ({ matches, backendRefs: [meshBackend()] });
const path = (value: string, type = 'PathPrefix') => ({ path: { type, value } });

const CHOICES: readonly (readonly [string, readonly object[], string, Options, number | undefined])[] = [
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
    [
      rule({ headers: [{ name: 'X', value: '1' }] }),
      rule({
        headers: [
          { name: 'X', value: '1' },
          { name: 'Z', value: '2' },
        ],
      }),
    ],
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
    [rule(path('(a+)+!', 'RegularExpression'))],
    `/${'a'.repeat(40)}`,
    {},
    undefined,
  ],
];

describe('trace chooses', () => {
  it.each(CHOICES)('%s', (_, rules, target, options, expected) => {
    const [steps = []] = ways([...all, routeOf({ rules })], `http://a${target}`, options);
    const [, chosen] = /^ok rule: spec\.rules\[(\d+)\]/.exec(steps[1] ?? '') ?? [];
    expect(chosen === undefined ? undefined : Number(chosen)).toBe(expected);
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
    expect(ways([...all, ...routes], 'http://a/')[0]?.[1]).toContain('HTTPRoute default/b');
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
    const rules = [{}, { service: 'web.Echo' }, { service: 'web.Echo', method: 'Say' }].map(method => ({
      ...(Object.keys(method).length > 0 && { matches: [{ method }] }),
      backendRefs: [meshBackend()],
    }));
    const endpoints = named(meshEndpoints({ endpoints: [endpoint({ protocol: 'gRPC' })] }), 'default/web');
    const objects = [endpoints, tailnet, gateway, route('GRPCRoute', 'default/web', { rules })];
    const chosen = ['/web.Echo/Say', '/web.Echo/Other', '/other.Echo/Say'].map(
      path => /rules\[(\d)\]/.exec(ways(objects, `http://a${path}`, { method: 'POST' })[0]?.[1] ?? '')?.[1],
    );
    expect(chosen).toEqual(['2', '1', '0']);
  });
});

describe('trace refuses', () => {
  it.each(['web.example.com', 'ftp://a/', 'a:0', 'a:70000', ':80'])('%s', target => {
    expect(() => parseRequest(target, { method: 'GET', headers: [] })).toThrow(
      'is neither a URL of http or https nor HOST:PORT',
    );
  });

  it('a header without a name', () => {
    expect(() => parseRequest('http://a/', { method: 'GET', headers: ['x'] })).toThrow(
      '"x" is not NAME: VALUE',
    );
  });
});
