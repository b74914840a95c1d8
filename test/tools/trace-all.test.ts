import { describe, expect, it } from 'vitest';
import { NAMESPACE } from '../../src/api/names.ts';
import type { DataPathMode } from '../../src/traffic/data-path.ts';
import { meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshGateway, meshRoutePolicy, meshTailnet } from '../support/objects.ts';
import { tracedRoutes } from '../support/tools/routes.ts';
import { managedTailnet, relaysObject, serviceObject, sliceObject } from '../support/traffic/objects.ts';

/** The texts of the routes among objects. */
function textsOf(...objects: readonly object[]): readonly string[] {
  return tracedRoutes([openGateway('default/public'), ...objects]).map(({ text }) => text);
}

/** The routes that use these objects. */
function tracedIn(objects: readonly object[], routes: readonly object[], dataPath: DataPathMode) {
  const gateways = ['public', 'b', 'c'].map(name => openGateway(`default/${name}`));
  return tracedRoutes([...gateways, ...objects, ...routes], { dataPath, podNamespace: NAMESPACE });
}

const tailnet = named(meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), 'one');
const web = named(meshEndpoints({ endpoints: [endpoint({ meshIP: 'fd7a:115c:a1e0::1' })] }), 'default/web');

const managed = named(meshTailnet(), 'one');
const toWeb = route('HTTPRoute', 'default/web');

const HEALTHY = { status: 'Healthy' };
const UNHEALTHY = { status: 'Unhealthy', error: 'refused' };

describe('of a route, trace --all', () => {
  it('names its cluster and endpoints, with their proxies', () => {
    const [text] = textsOf(tailnet, web, route('HTTPRoute', 'default/web', { hostnames: ['web.test'] }));
    expect(text?.split('\n')).toEqual([
      'HTTPRoute default/web for web.test at Gateway default/public',
      '  cluster httproute/default/web/rule/0: HTTP/1.1',
      expect.stringMatching(
        /^ {4}\[fd7a:115c:a1e0::1\]:8080 +through 10\.0\.0\.1:1055 +backend 0, weight 1, priority 0, HEALTHY$/,
      ),
    ]);
  });

  it('has the discovered endpoints of a status, with their health', () => {
    const tagSelectors = [{ key: 'web', operator: 'Exists' }];
    const found = (name: string, address: string, status: string) => ({
      name,
      address,
      status,
      source: 'TagSelector',
      meshFQDN: `${name}.example.ts.net`,
      protocol: 'HTTP',
    });
    const selecting = {
      ...named(
        meshEndpoints({
          ...{ endpoints: undefined, tagSelectors },
          endpointTemplate: { healthCheck: { enabled: true } },
        }),
        'default/web',
      ),
      status: {
        discovery: { tailnet: 'example.ts.net' },
        endpoints: [found('a', '100.64.0.1:8080', 'Healthy'), found('b', '100.64.0.2:8080', 'Unhealthy')],
      },
    };
    const [text] = tracedIn([tailnet, selecting], [toWeb], 'Proxy').map(each => each.text);
    expect(text).toMatch(/100\.64\.0\.1:8080 .* weight 1, priority 0, HEALTHY\n/);
    expect(text).toMatch(/100\.64\.0\.2:8080 .* weight 1, priority 0, UNHEALTHY$/);
    const [without] = textsOf(
      tailnet,
      { ...selecting, status: undefined },
      route('HTTPRoute', 'default/web'),
    );
    expect(without).toContain('it has no endpoints');
  });

  it('is one for each data path that its Gateways have', () => {
    const direct = named(meshGateway({ dataPath: { mode: 'Direct' } }), 'default/public');
    const parentRefs = ['public', 'b', 'c', 'b'].map(name => ({ name }));
    const world = [tailnet, web, direct];
    const many = route('HTTPRoute', 'default/web', { parentRefs });
    const texts = tracedIn(world, [many], 'Proxy').map(({ text }) => text);
    expect(texts).toEqual([
      expect.stringMatching(
        /^HTTPRoute default\/web at Gateway default\/public\n.*data path Direct\n.*\n.* directly /,
      ),
      expect.stringMatching(
        /^HTTPRoute default\/web at Gateways default\/b, default\/c\n.*\n.* through 10\.0\.0\.1:1055 /,
      ),
    ]);
    const nowhere = route('HTTPRoute', 'default/web', { parentRefs: [] });
    const [text] = tracedIn(world, [nowhere], 'Direct').map(each => each.text);
    expect(text).toMatch(/^HTTPRoute default\/web at no Gateway\n.*\n.* directly /);
  });

  it('has what MeshGateways set for its Gateways, and which of them are not applied', () => {
    const created = (name: string, creationTimestamp: string, spec: object) =>
      named(meshGateway({ ...spec }), `default/${name}`, { creationTimestamp });
    const off = {
      ...{ dataPath: { mode: 'Direct' }, healthChecks: { envoy: 'Off' } },
      routeStatus: { anchors: false },
    };
    const checked = named(
      meshEndpoints({ endpoints: [endpoint({ healthCheck: { enabled: true } })] }),
      'default/web',
    );
    const [text = ''] = textsOf(
      ...[tailnet, { ...checked, status: { endpoints: [{ name: 'x', status: 'Healthy' }] } }],
      route('HTTPRoute', 'default/web'),
      created('edge', '2026-01-01T00:00:00Z', off),
      created('later', '2026-02-01T00:00:00Z', {}),
    );
    expect(text.split('\n').slice(0, 5)).toEqual([
      'HTTPRoute default/web at Gateway default/public',
      "  MeshGateway edge sets for Gateway default/public: data path Direct, Envoy's health checks Off, no anchors",
      '  MeshGateway later is not applied to Gateway default/public: MeshGateway edge decides, as the oldest',
      '  cluster httproute/default/web/rule/0: HTTP/1.1, not checked by Envoy',
      expect.stringMatching(/ directly +backend 0, weight 1, priority 0, UNHEALTHY$/),
    ]);
  });

  it('has what a MeshRoutePolicy sets for a rule, and which others do not apply', () => {
    const metadata = [{ region: 'eu', tier: 'prod' }, { tier: 'prod' }, {}];
    const endpoints = metadata.map((each, index) =>
      endpoint({ name: `e${index}`, meshIP: `100.64.0.${index + 1}`, metadata: each }),
    );
    const labels = (matchLabels: object) => ({ matchLabels });
    const policy = meshRoutePolicy({
      failover: { healthyPercent: 80 },
      endpoints: {
        require: labels({ tier: 'prod' }),
        prefer: [labels({ region: 'eu' }), labels({ a: 'b', c: 'd' })],
      },
    });
    const [text = ''] = textsOf(
      ...[tailnet, named(meshEndpoints({ endpoints }), 'default/web'), route('HTTPRoute', 'default/web')],
      ...[named(policy, 'default/a'), named(meshRoutePolicy(), 'default/b')],
    );
    expect(text.split('\n').slice(2)).toEqual([
      '    MeshRoutePolicy a sets for the rule: requires tier=prod, which selects 2 of 3 endpoints; prefers region=eu, then a=b and c=d; a priority gives traffic away below 80 percent of healthy endpoints',
      '    MeshRoutePolicy b does not apply: MeshRoutePolicy a does',
      expect.stringMatching(/100\.64\.0\.1:8080 .* priority 0, HEALTHY +region=eu, tier=prod$/),
      expect.stringMatching(/100\.64\.0\.2:8080 .* priority 1, HEALTHY +tier=prod$/),
    ]);
  });

  it('has the metadata of each endpoint, in quotes where it is no word, and cut where it is long', () => {
    const list = [
      endpoint({
        name: 'a',
        meshIP: 'fd7a:115c:a1e0::1',
        metadata: { region: 'eu-west', 'example.com/zone': '' },
      }),
      endpoint({ name: 'b', meshIP: '100.64.0.2', metadata: { note: 'two\nlines', long: 'x'.repeat(61) } }),
      endpoint({ name: 'c', meshIP: '100.64.0.3' }),
    ];
    const object = named(meshEndpoints({ endpoints: list }), 'default/web');
    const [text = ''] = tracedIn([tailnet, object], [toWeb], 'Proxy').map(each => each.text);
    const rows = text.split('\n').slice(2);
    expect(rows.map(row => /HEALTHY *(.*)$/.exec(row)?.[1])).toEqual([
      'region=eu-west, example.com/zone=',
      `note="two\\nlines", long=${'x'.repeat(60)}...`,
      '',
    ]);
  });

  it('has the levels of a MeshRoutePolicy, and what it names but cannot use', () => {
    const mesh = { group: 'mesh-gateway.dev', kind: 'MeshEndpoints' };
    const policy = (first: object) =>
      named(
        meshRoutePolicy({
          failover: { levels: [{ backends: [first] }, { backends: [{ ...mesh, name: 'web' }] }] },
        }),
        'default/p',
      );
    const world = [tailnet, web, serviceObject('shop'), sliceObject('shop', [{ addresses: ['10.0.0.5'] }])];
    const toShop = policy({ name: 'shop', port: 80 });
    const [text = ''] = textsOf(...world, route('HTTPRoute', 'default/web'), toShop);
    expect(text.split('\n').slice(2)).toEqual([
      '    MeshRoutePolicy p sets for the rule: level 0: Service default/shop:80 beyond the rule (backend 1); level 1: MeshEndpoints default/web:8080',
      expect.stringMatching(/\[fd7a:115c:a1e0::1\]:8080 .* backend 0, weight 1, priority 1, HEALTHY$/),
      expect.stringMatching(/10\.0\.0\.5:8080 +directly +backend 1, weight 1, priority 0, UNKNOWN$/),
    ]);
    const missing = policy({ ...mesh, name: 'other' });
    const [unusable = ''] = textsOf(...world, route('HTTPRoute', 'default/web'), missing);
    expect(unusable).toMatch(/\n {4}MeshRoutePolicy p: BackendNotFound: spec\.failover\.levels\[0\]/);
  });

  it('has the Service for which Envoy Gateway splits a rule with levels, unless it uses the address of the Service', () => {
    const levels = [{ backends: [{ name: 'shop', port: 80 }] }];
    const world = [tailnet, web, serviceObject('shop'), openGateway('default/b')];
    const toBoth = route('HTTPRoute', 'default/web', {
      parentRefs: [{ name: 'public' }, { name: 'b' }],
      rules: [{ backendRefs: [meshBackend(), { name: 'shop', port: 80 }] }],
    });
    const p = named(meshRoutePolicy({ failover: { levels } }), 'default/p');
    const problems = (...objects: readonly object[]) =>
      textsOf(...world, toBoth, p, ...objects)
        .join('\n')
        .match(/(not used|MeshRoutePolicy p): [A-Z]\w+: .*/g);
    expect(problems()).toEqual([
      expect.stringMatching(/: ServiceInRule: Service default\/shop:80 is a backend of .* or apply \{/),
      expect.stringContaining(
        'NoEndpoints: spec.rules[0].backendRefs[1]: Service default/shop has no endpoints',
      ) as string,
    ]);
    const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web' }];
    const routing = {
      ...{ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'BackendTrafficPolicy' },
      spec: { targetRefs, routingType: 'Service' },
    };
    expect(problems(named(routing, 'default/routing'))).toBe(null);
  });

  it('has a Backend whose host name Envoy Gateway does not resolve, because a MeshEndpoints comes first', () => {
    const backend = {
      ...{ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'Backend' },
      spec: { endpoints: [{ fqdn: { hostname: 'example.com', port: 80 } }] },
    };
    const ref = { group: 'gateway.envoyproxy.io', kind: 'Backend', name: 'names' };
    const problems = (...backendRefs: readonly object[]) =>
      textsOf(
        tailnet,
        web,
        named(backend, 'default/names'),
        route('HTTPRoute', 'default/web', { rules: [{ backendRefs }] }),
      )
        .join('\n')
        .match(/MixedBackends: .*/g);
    expect(problems(meshBackend(), ref)).toEqual([
      expect.stringContaining('spec.rules[0].backendRefs[1]: Backend default/names has host names') as string,
    ]);
    expect(problems(ref, meshBackend())).toBe(null);
  });

  it('lists unused backends with the reason', () => {
    const rules = [
      { backendRefs: [meshBackend({ port: 81 })] },
      { backendRefs: [meshBackend({ name: 'missing' })] },
    ];
    const [text = ''] = textsOf(tailnet, web, route('HTTPRoute', 'default/web', { rules }));
    expect(text).toContain('no endpoint: requests are answered with 503');
    expect(text).toMatch(/not used: PortNotFound: .*port 81 is not a port/);
    expect(text).toMatch(/not used: BackendNotFound: /);
  });

  it('has the reason where all weights are 0', () => {
    const refs = [meshBackend({ weight: 0 }), { name: 'near', port: 80, weight: 0 }];
    const toRefs = route('HTTPRoute', 'default/web', { rules: [{ backendRefs: refs }] });
    const [text = ''] = textsOf(tailnet, web, toRefs);
    expect(text).toContain('    not used: NoWeight: spec.rules[0]: all backendRefs have weight 0: raise one');
    const [served = ''] = textsOf(tailnet, web, route('HTTPRoute', 'default/web'));
    expect(served).not.toContain('weight 0');
  });

  it.each([
    ['HTTPRoute', 'requests are answered with 503'],
    ['GRPCRoute', 'requests are answered with 503'],
    ['TLSRoute', 'connections are closed'],
    ['TCPRoute', 'connections are closed'],
    ['UDPRoute', 'datagrams are dropped'],
  ] as const)('has what becomes of the traffic of a %s without endpoints: %s', (kind, consequence) => {
    const rules = [{ backendRefs: [meshBackend({ name: 'missing' })] }];
    const [text = ''] = textsOf(tailnet, route(kind, 'default/web', { rules }));
    expect(text).toContain(`no endpoint: ${consequence}`);
  });

  it.each<readonly [string, readonly object[], Readonly<Record<string, unknown>>, boolean]>([
    ['is healthy where one endpoint can take traffic', [HEALTHY, UNHEALTHY], {}, true],
    ['is healthy before the first status', [], {}, true],
    ['is unhealthy where no endpoint can take traffic', [UNHEALTHY, UNHEALTHY], {}, false],
    ['is unhealthy where all endpoints drain', [], { deletionTimestamp: '2026-01-01T00:00:00Z' }, false],
  ])('%s', (_, statuses, more, isHealthy) => {
    const list = ['/a', '/b'].map((path, at) =>
      endpoint({ name: `e${at}`, meshIP: `100.64.0.${at + 1}`, healthCheck: { enabled: true, path } }),
    );
    const object = named(meshEndpoints({ endpoints: list }), 'default/web', more);
    const status = { endpoints: statuses.map((entry, at) => ({ name: `e${at}`, ...entry })) };
    const withStatus = statuses.length > 0 ? { ...object, status } : object;
    const [found] = tracedIn([tailnet, withStatus], [toWeb], 'Proxy');
    expect(found?.reaches).toBe(isHealthy ? 'all' : 'none');
    const noEndpoint = 'no endpoint can take traffic: requests are answered with 503';
    expect(found?.text.includes(noEndpoint)).toBe(!isHealthy);
  });

  const poolReady = (status: string, reason: string) => [
    {
      type: 'PoolReady',
      status,
      reason,
      message: `why, and the fix of ${reason}`,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    },
  ];
  const POOL_READY = poolReady('True', 'PoolReady');
  const proxyAddress = '10.96.0.7:1055';

  it.each([
    ['NotAuthenticated', poolReady('False', 'NotAuthenticated')],
    ['AwaitingApproval', poolReady('False', 'AwaitingApproval')],
    ['ImagePull', poolReady('False', 'ImagePull')],
    ['Conflict', poolReady('Unknown', 'Conflict')],
  ])('has the reason and the message of PoolReady where there is no proxy: %s', (reason, conditions) => {
    const status = { conditions, pool: { ready: 0, desired: 2 } };
    const [found] = tracedIn([{ ...managed, status }, web], [toWeb], 'Proxy');
    expect(found?.text).toContain(
      `not used: ProxyUnknown: spec.rules[0].backendRefs[0]: MeshTailnet one of MeshEndpoints default/web has no proxy: PoolReady is ${conditions[0]?.status}, ${reason}: why, and the fix of ${reason}`,
    );
    expect(found?.text).toContain('no endpoint: requests are answered with 503');
  });

  it.each<readonly [string, object, string | undefined]>([
    [
      'has the reason where no mesh pod is ready',
      { conditions: poolReady('False', 'CrashLoop'), pool: { ready: 0, proxyAddress } },
      'PoolReady is False, CrashLoop: why, and the fix of CrashLoop',
    ],
    [
      'is healthy where one of two mesh pods is ready',
      { conditions: poolReady('False', 'Starting'), pool: { ready: 1, proxyAddress } },
      undefined,
    ],
    [
      'is healthy where all mesh pods are ready',
      { conditions: POOL_READY, pool: { ready: 2, proxyAddress } },
      undefined,
    ],
  ])('%s', (_, status, problem) => {
    const [found] = tracedIn([{ ...managed, status }, web], [toWeb], 'Proxy');
    expect(found?.text).toContain('through 10.96.0.7:1055');
    expect(found?.text.match(/not ready: (.*)/)?.[1]).toBe(problem && `MeshTailnet one: ${problem}`);
    expect(found?.reaches).toBe(problem === undefined ? 'all' : 'none');
    const [direct] = tracedIn([{ ...managed, status }, web], [toWeb], 'Direct');
    expect(direct?.reaches).toBe('all');
  });

  it('has the relays of UDP endpoints, and the endpoints themselves', () => {
    const metadata = { at: 'home' };
    const dns = endpoint({ name: 'dns', meshIP: '100.64.0.7', port: 53, protocol: 'UDP', metadata });
    const entry = { name: 'dns', status: 'Healthy', address: '100.64.0.7:53', relayPort: 20_053 };
    const object = {
      ...named(meshEndpoints({ endpoints: [dns] }), 'default/dns'),
      status: { endpoints: [entry] },
    };
    const rules = [{ backendRefs: [meshBackend({ name: 'dns', port: 53 })] }];
    const toDns = route('UDPRoute', 'default/dns', { rules });
    const traced = (...objects: readonly object[]) =>
      tracedIn([managedTailnet('one'), object, ...objects], [toDns], 'Proxy')[0];
    const found = traced(relaysObject('one', { '10.1.0.1': 'ready', '10.1.0.2': 'terminating' }));
    expect(found?.text.split('\n').slice(2)).toEqual([
      '    10.1.0.1:20053  relays to 100.64.0.7:53  backend 0, weight 1, priority 0, HEALTHY   at=home',
      '    10.1.0.2:20053  relays to 100.64.0.7:53  backend 0, weight 1, priority 0, DRAINING  at=home',
    ]);
    expect(found?.reaches).toBe('all');
    expect(traced()?.text).toContain('no endpoint: datagrams are dropped');
    expect(traced()?.text).toContain('has no relay for UDP: Service mesh-relay-one has no endpoints');
  });

  it('has the addresses of an externalTarget, which need no pool, and reports that a file has none', () => {
    const externalTarget = 'web.example.com:443';
    const entry = {
      name: 'web',
      status: 'Healthy',
      externalTarget,
      resolvedAddresses: ['1.1.1.1', '1.1.1.2'],
    };
    const object = named(
      meshEndpoints({ endpoints: [endpoint({ externalTarget, metadata: { at: 'home' } })] }),
      'default/web',
    );
    const traced = (status: object) => tracedIn([managed, { ...object, status }], [toWeb], 'Proxy')[0];
    const found = traced({ endpoints: [entry] });
    expect(found?.text.split('\n').slice(2)).toEqual([
      '    1.1.1.1:443  directly, as web.example.com:443  backend 0, weight 1, priority 0, HEALTHY  at=home',
      '    1.1.1.2:443  directly, as web.example.com:443  backend 0, weight 1, priority 0, HEALTHY  at=home',
    ]);
    expect(found?.reaches).toBe('all');
    const unresolved = traced({});
    expect(unresolved?.reaches).toBe('none');
    expect(unresolved?.text).toContain(
      'Where objects have no status, as in files, its addresses are not known',
    );
  });

  it('has no endpoints while the MeshTailnet is being deleted', () => {
    const status = { conditions: POOL_READY, pool: { ready: 2, proxyAddress } };
    const deleted = named(meshTailnet(), 'one', { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const [found] = tracedIn([{ ...deleted, status }, web], [toWeb], 'Proxy');
    expect(found?.text).toMatch(/not used: ProxyUnknown: .* has no proxy: it is being deleted: /);
    expect(found?.text).not.toContain('through');
  });

  it('names the clusters that the operator alone checks, and the health that it gives the endpoints', () => {
    const checked = named(
      meshEndpoints({ endpoints: [endpoint({ healthCheck: { enabled: true } })] }),
      'default/web',
    );
    const entry = { name: 'web', status: 'Unhealthy', reason: 'CheckFailed', error: 'status 503' };
    const world = [tailnet, { ...checked, status: { endpoints: [entry] } }];
    const off = named(meshGateway({ healthChecks: { envoy: 'Off' } }), 'default/public');
    const toWeb = route('HTTPRoute', 'default/web');
    const [both, alone] = [world, [...world, off]].map(
      objects => tracedIn(objects, [toWeb], 'Proxy')[0]?.text,
    );
    expect(both).toMatch(/rule\/0: HTTP\/1\.1\n.*UNKNOWN/);
    expect(alone).toMatch(/rule\/0: HTTP\/1\.1, not checked by Envoy\n.*UNHEALTHY/);
  });

  it('is empty for a route without MeshEndpoints', () => {
    const other = route('HTTPRoute', 'default/other', {
      rules: [{ backendRefs: [{ name: 'plain', port: 80 }] }],
    });
    expect(textsOf(other)).toEqual([]);
  });
});
