import { describe, expect, it } from 'vitest';
import { ROUTE_KINDS } from '../../src/api/key.ts';
import type { ResourceKind } from '../../src/api/key.ts';
import type { Reason } from '../../src/api/reasons.ts';
import { servedObjects } from '../../src/tools/check/objects.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import type { Step } from '../../src/tools/trace/step.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshRoutePolicy, meshTailnet } from '../support/objects.ts';
import {
  all,
  firstBroken,
  gateway,
  reasonsOf,
  routeOf,
  tailnet,
  ways,
  web,
} from '../support/tools/traced.ts';

const unread = (name: 'gateway' | 'rule', text: string): Step => ({
  is: 'unknown',
  name,
  text,
  problem: { reason: 'NotRead', text },
});

describe('trace does not know what becomes of a request', () => {
  it.each<readonly [string, ReadonlySet<ResourceKind>, readonly Step[]]>([
    [
      'where Gateways could not be read',
      new Set(ROUTE_KINDS),
      [unread('gateway', 'you have no right to list Gateways in all namespaces')],
    ],
    [
      'where routes could not be read',
      new Set<ResourceKind>(['Gateway', 'GRPCRoute']),
      [
        { is: 'ok', name: 'listener', text: 'http (HTTP, port 80) of Gateway default/public' },
        unread('rule', 'you have no right to list HTTPRoutes in all namespaces'),
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

  it.each([
    [
      'gold',
      ['ok backend: MeshEndpoints default/web, port 8080', 'ok endpoint: b at 100.64.0.2:8080: HEALTHY'],
    ],
    [
      'none',
      [
        'broken backend: MeshEndpoints default/web, port 8080: NoMatchingEndpoints: spec.rules[0].backendRefs[0]: spec.endpoints.require selects no endpoint of MeshEndpoints default/web, so it gets no traffic: add the metadata to its endpoints, or correct require',
      ],
    ],
  ])('to the endpoints alone that a policy requires, with the tier %s', (tier, expected) => {
    const endpoints = [endpoint(), endpoint({ name: 'b', meshIP: '100.64.0.2', metadata: { tier: 'gold' } })];
    const policy = meshRoutePolicy({
      targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web' }],
      endpoints: { require: { matchLabels: { tier } } },
    });
    const objects = [named(meshEndpoints({ endpoints }), 'default/web'), named(policy, 'default/p'), tailnet];
    const [steps = []] = ways([...objects, gateway, route('HTTPRoute', 'default/web')], 'http://a/');
    expect(steps.filter(line => / (backend|endpoint): /.test(line))).toEqual(expected);
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

describe('trace names the step that is broken:', () => {
  it.each<readonly [string, Reason, readonly object[], string, string]>([
    [
      'no listener',
      'NoListener',
      all,
      'http://a:8080/',
      'broken listener: no listener is for HTTP at port 8080 for a: add one, or use an existing one: http of default/public (HTTP at port 80)',
    ],
    ['no route', 'NoRouteAttached', all, 'http://a/', 'broken rule: no route attaches to it'],
    [
      'a route that attaches to nothing',
      'ParentNotFound',
      [...all, routeOf({ parentRefs: [{ name: 'publik' }] })],
      'http://a/',
      'broken rule: HTTPRoute default/web is not attached: ParentNotFound: spec.parentRefs[0].name: Gateway default/publik does not exist: did you mean public?',
    ],
    [
      'a hostname that only a route has that attaches to nothing',
      'ListenerNotFound',
      [
        ...[...all, routeOf({ hostnames: ['b'] })],
        route('HTTPRoute', 'default/a', {
          hostnames: ['a'],
          parentRefs: [{ name: 'public', sectionName: 'web' }],
        }),
      ],
      'http://a/',
      'broken rule: HTTPRoute default/a is not attached: ListenerNotFound: spec.parentRefs[0].sectionName: Gateway default/public has no listener web: use one that it has (http, tls, tcp, udp)',
    ],
    [
      'no hostname',
      'NoRouteForHost',
      [...all, routeOf({ hostnames: ['b'] })],
      'http://a/',
      'broken rule: no route is for a: add it to hostnames of one: they have b (HTTPRoute default/web)',
    ],
    [
      'no rule',
      'NoRuleMatches',
      [...all, routeOf({ rules: [{ matches: [{ path: { value: '/b' } }], backendRefs: [meshBackend()] }] })],
      'http://a/',
      'broken rule: no rule for a matches GET / (404): they match "path prefix /b"',
    ],
    [
      'no backend',
      'NoBackends',
      [...all, routeOf({ rules: [{}] })],
      'http://a/',
      'broken backend: spec.rules[0]: has no backendRefs: add one',
    ],
    [
      'no weight',
      'NoWeight',
      [...all, routeOf({ rules: [{ backendRefs: [meshBackend({ weight: 0 })] }] })],
      'http://a/',
      'broken backend: spec.rules[0]: all backendRefs have weight 0: raise one',
    ],
    [
      'no port',
      'PortNotFound',
      [...all, routeOf({ rules: [{ backendRefs: [meshBackend({ port: 81 })] }] })],
      'http://a/',
      'broken backend: MeshEndpoints default/web, port 81: PortNotFound',
    ],
    [
      'no grant',
      'RefNotPermitted',
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
      'CheckFailed',
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
      'a backend without its group',
      'GroupMissing',
      [
        web,
        tailnet,
        gateway,
        routeOf({ rules: [{ backendRefs: [{ kind: 'MeshEndpoints', name: 'web', port: 8080 }] }] }),
      ],
      'http://a/',
      'add group: mesh-gateway.dev',
    ],
    [
      'a backend of a misspelt kind',
      'UnknownKind',
      [
        web,
        tailnet,
        gateway,
        routeOf({
          rules: [
            { backendRefs: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoint', name: 'web', port: 8080 }] },
          ],
        }),
      ],
      'http://a/',
      'write MeshEndpoints',
    ],
    [
      'no mesh pod',
      'ProxyUnknown',
      [web, named({ ...meshTailnet(), status: { conditions: [] } }, 'example'), gateway, routeOf({})],
      'http://a/',
      'has no proxy: it has no condition PoolReady',
    ],
  ])('%s', (_, reason, objects, target, text) => {
    expect(firstBroken(objects, target)).toEqual([expect.stringContaining(text)]);
    expect(reasonsOf(objects, target)).toEqual([reason]);
  });
});

describe('trace refuses', () => {
  it.each(['web.example.com', 'ftp://a/', 'a:0', 'a:70000', ':80'])('%s', target => {
    expect(() => parseRequest(target, { method: 'GET', headers: [] })).toThrow(
      'is neither a URL of http or https nor HOST:PORT',
    );
  });

  it.each([
    ['web.example.com', 'HOST:PORT: write http://web.example.com/'],
    ['web.example.com/a?b=c', 'HOST:PORT: write http://web.example.com/a?b=c'],
    ['default/web', '"default/web" is neither a URL of http or https nor HOST:PORT'],
  ])('%s, with the URL where it is clear', (target, message) => {
    expect(() => parseRequest(target, { method: 'GET', headers: [] })).toThrow(
      new RegExp(`${message.replaceAll(/[.?]/g, '\\$&')}$`),
    );
  });

  it('a header without a name', () => {
    expect(() => parseRequest('http://a/', { method: 'GET', headers: ['x'] })).toThrow(
      '"x" is not NAME: VALUE',
    );
  });
});
