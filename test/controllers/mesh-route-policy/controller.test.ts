import { describe, expect, it } from 'vitest';
import { access, meshRoutePolicyController } from '../../../src/controllers/mesh-route-policy/controller.ts';
import type { ObjectEvent } from '../../../src/store/resources.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { trafficValues } from '../../../src/store/traffic/values.ts';
import { gatewayObject, meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshRoutePolicy, meshTailnet } from '../../support/objects.ts';
import { Runtime } from '../../support/runtime/runtime.ts';

type Fields = Readonly<Record<string, unknown>>;

const policy = (name: string, spec: Fields = {}, metadata: Fields = {}) =>
  named(meshRoutePolicy(spec), `default/${name}`, metadata);
const target = (sectionName?: string, name = 'web') => ({
  ...{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name },
  ...(sectionName !== undefined && { sectionName }),
});
const to = (gateways: readonly string[], spec: Fields = {}) =>
  route('HTTPRoute', 'default/web', { parentRefs: gateways.map(name => ({ name })), ...spec });
const web = (metadata: Fields = {}) =>
  named(meshEndpoints({ endpoints: [endpoint({ metadata })] }), 'default/web');
const MESH = [openGateway('default/public'), named(meshTailnet(), 'one'), web(), to(['public'])];
const REQUIRE_EU = { endpoints: { require: { matchLabels: { region: 'eu' } } } };

/** The controller on resources in memory. */
async function controllerOn(...objects: readonly object[]) {
  const runtime = new Runtime(objects, trafficIndexes);
  const { memory, clock, tracking } = runtime;
  const events: ObjectEvent[] = [];
  let writes = 0;
  const write = {
    replaceStatus: async (...given: Parameters<typeof memory.write.replaceStatus>) => {
      writes++;
      await memory.write.replaceStatus(...given);
    },
  } as Pick<typeof memory.write, 'replaceStatus'>;
  const values = trafficValues(tracking, {
    ...{ dataPath: 'Proxy', clusterEncoding: '', settingsFrom: 'MeshGateway' },
    readsBackends: false,
    readsServices: true,
  });
  runtime.start(
    meshRoutePolicyController({
      ...{ tracking, values, write },
      now: () => new Date('2026-01-01T00:00:00Z'),
      events: { record: event => void events.push(event) },
    }),
    { syncPeriodMs: 30_000 },
  );
  await memory.start();
  const settle = () => clock.advance(1000);
  await settle();
  /** Each ancestor with its conditions. */
  const statusOf = (name = 'p') =>
    memory.read
      .get({ kind: 'MeshRoutePolicy', namespace: 'default', name })
      ?.status?.ancestors?.map(({ ancestorRef, conditions }) => {
        const texts = (conditions ?? []).map(
          ({ status, reason, message }) => `${status} ${reason}: ${message}`,
        );
        return [`${ancestorRef.kind} ${ancestorRef.namespace}/${ancestorRef.name}`, ...texts];
      });
  const put = async (...changed: readonly object[]) => {
    for (const object of changed) await memory.author.put(object);
    await settle();
  };
  const remove = async (name: string) => {
    await memory.author.remove({ kind: 'MeshRoutePolicy', namespace: 'default', name });
    await settle();
  };
  return { statusOf, put, remove, events, memory, countWrites: () => writes };
}

const ACCEPTED = 'True Accepted: applies to HTTPRoute web';
const RESOLVED = 'True ResolvedRefs: the policy has its effect on all rules that it applies to';

describe('the status of a MeshRoutePolicy', () => {
  it('has an entry for each Gateway of its routes', async () => {
    const objects = [...MESH, openGateway('default/b'), to(['public', 'b'])];
    const { statusOf, memory, countWrites } = await controllerOn(...objects, policy('p'));
    expect(statusOf()).toEqual([
      ['Gateway default/b', ACCEPTED, RESOLVED],
      ['Gateway default/public', ACCEPTED, RESOLVED],
    ]);
    const stored = memory.read.get({ kind: 'MeshRoutePolicy', namespace: 'default', name: 'p' });
    expect(stored?.status?.ancestors?.[0]).toMatchObject({
      ancestorRef: { group: 'gateway.networking.k8s.io' },
      controllerName: 'mesh-gateway.dev/mesh-operator',
      conditions: [{ observedGeneration: 1, lastTransitionTime: '2026-01-01T00:00:00Z' }, {}],
    });
    expect(countWrites()).toBe(1);
  });

  it('has at most 16 entries, first those with a problem', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `g${index + 10}`);
    const gateways = names.map(name => openGateway(`default/${name}`));
    const missing = policy('p', { targetRefs: [target(), target(undefined, 'zzz')] });
    const { statusOf } = await controllerOn(...gateways, ...MESH, to(names), missing);
    expect(statusOf()).toHaveLength(16);
    expect(
      statusOf()
        ?.slice(0, 2)
        .map(([ancestor]) => ancestor),
    ).toEqual(['HTTPRoute default/zzz', 'Gateway default/g10']);
  });

  it('is written again only when it changes', async () => {
    const { put, countWrites } = await controllerOn(...MESH, policy('p'));
    await put(web({ region: 'eu' }));
    expect(countWrites()).toBe(1);
  });
});

describe('the condition Accepted of a MeshRoutePolicy', () => {
  it('is False while a route does not exist, with Events', async () => {
    const { statusOf, put, events } = await controllerOn(...MESH.slice(0, 3), policy('p'));
    const why = 'HTTPRoute web does not exist in this namespace: create it, or correct spec.targetRefs';
    expect(statusOf()).toEqual([['HTTPRoute default/web', `False TargetNotFound: ${why}`, RESOLVED]]);
    await put(to(['public']));
    expect(statusOf()).toEqual([['Gateway default/public', ACCEPTED, RESOLVED]]);
    expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(['Warning TargetNotFound']);
  });

  it.each([
    ['of an HTTPRoute', 'HTTPRoute', [{ name: 'a' }], /has no rule with the name b: set name in the rule/],
    ['of a TCPRoute with several rules', 'TCPRoute', [{ name: 'b' }, {}], /or several rules, which share/],
  ] as const)('is False for a rule %s that cannot be named', async (_, kind, rules, why) => {
    const given = route(kind, 'default/web', {
      rules: rules.map(rule => ({ ...rule, backendRefs: [meshBackend()] })),
    });
    const named = policy('p', { targetRefs: [{ ...target('b'), kind }] });
    const { statusOf } = await controllerOn(...MESH.slice(0, 3), given, named);
    const [entry] = statusOf() ?? [];
    expect(entry?.[0]).toBe(`${kind} default/web`);
    expect(entry?.[1]).toMatch(/^False TargetNotFound: /);
    expect(entry?.[1]).toMatch(why);
  });

  it('is Unknown while no Gateway accepts the route', async () => {
    const { statusOf } = await controllerOn(...MESH.slice(1), policy('p'));
    expect(statusOf()?.[0]?.slice(0, 2)).toEqual([
      'HTTPRoute default/web',
      expect.stringMatching(/^Unknown NoGateway: no Gateway accepts HTTPRoute web: /),
    ]);
  });

  it('is False where an older policy has the same target, until that is deleted', async () => {
    // In memory all are equally old, so that the first by name applies.
    const { statusOf, remove } = await controllerOn(...MESH, policy('a'), policy('b'));
    expect(statusOf('a')?.[0]?.[1]).toBe(ACCEPTED);
    expect(statusOf('b')?.[0]?.[1]).toMatch(/^False Conflicted: HTTPRoute web: MeshRoutePolicy a applies, /);
    await remove('a');
    expect(statusOf('b')?.[0]?.[1]).toBe(ACCEPTED);
  });

  it('is False for a policy of a route whose rules all have policies of their own', async () => {
    const rules = [{ name: 'a', backendRefs: [meshBackend()] }];
    const ofRule = policy('rule', { targetRefs: [target('a')] });
    const { statusOf } = await controllerOn(...MESH, to(['public'], { rules }), policy('p'), ofRule);
    expect(statusOf('rule')?.[0]?.[1]).toBe('True Accepted: applies to rule a of HTTPRoute web');
    expect(statusOf()?.[0]?.[1]).toMatch(/^False Conflicted: HTTPRoute web: MeshRoutePolicy rule applies, /);
  });
});

describe('the condition ResolvedRefs of a MeshRoutePolicy', () => {
  it('is False where the route has no MeshEndpoints', async () => {
    const rules = [{ backendRefs: [{ name: 'shop', port: 80 }] }];
    const { statusOf } = await controllerOn(...MESH, to(['public'], { rules }), policy('p'));
    expect(statusOf()?.[0]?.[2]).toMatch(/^False NoMeshEndpoints: HTTPRoute web has no MeshEndpoints /);
  });

  it('is False while require selects no endpoint of a backend', async () => {
    const { statusOf, put } = await controllerOn(...MESH, policy('p', REQUIRE_EU));
    expect(statusOf()?.[0]?.[2]).toMatch(
      /^False NoMatchingEndpoints: spec\.rules\[0\]\.backendRefs\[0\]: spec\.endpoints\.require selects no endpoint of MeshEndpoints default\/web, /,
    );
    await put(web({ region: 'eu' }));
    expect(statusOf()?.[0]?.[2]).toBe(RESOLVED);
  });

  it('is False where a rule would have more than 16 priorities', async () => {
    const endpoints = Array.from({ length: 20 }, (_, index) =>
      endpoint({
        name: `e${index}`,
        meshIP: `100.64.0.${index + 1}`,
        meshFQDN: `e${index}.example.ts.net`,
        priority: index % 10,
        metadata: { tier: index < 10 ? 'a' : 'b' },
      }),
    );
    const many = named(meshEndpoints({ endpoints }), 'default/web');
    const spec = { endpoints: { prefer: [{ matchLabels: { tier: 'a' } }] } };
    const { statusOf } = await controllerOn(...MESH, many, policy('p', spec));
    expect(statusOf()?.[0]?.[2]).toMatch(/^False TooManyPriorities: .* would have 20 priorities, /);
  });
});

const levels = (...all: readonly (readonly Fields[])[]) =>
  policy('p', { failover: { levels: all.map(backends => ({ backends })) } });
const SHOP = { name: 'shop', port: 80 };
const HOME = meshBackend();
const SHOP_SERVICE = named(
  { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } },
  'default/shop',
);
const SUPPORTED = 'True Supported: levels are used whatever endpoints the backends of the rules have';

describe('the condition of a MeshRoutePolicy with levels', () => {
  it('ResolvedRefs is False while a Service that a level names does not exist', async () => {
    const { statusOf, put } = await controllerOn(...MESH, levels([SHOP], [HOME]));
    expect(statusOf()?.[0]?.[2]).toMatch(
      /^False BackendNotFound: spec\.failover\.levels\[0\]\.backends\[0\]: Service default\/shop:80 does not exist: /,
    );
    await put(SHOP_SERVICE);
    expect(statusOf()).toEqual([['Gateway default/public', ACCEPTED, RESOLVED, SUPPORTED]]);
  });

  it('FailoverSupported is True for a TCPRoute with a Service, which Envoy Gateway never splits', async () => {
    const kind = 'TCPRoute';
    const rules = [{ backendRefs: [meshBackend(), SHOP] }];
    const tcp = named(meshEndpoints({ endpoints: [endpoint({ protocol: 'TCP' })] }), 'default/web');
    const given = policy('p', {
      targetRefs: [{ ...target(), kind }],
      failover: { levels: [{ backends: [SHOP] }, { backends: [HOME] }] },
    });
    const route4 = route(kind, 'default/web', { rules });
    const { statusOf } = await controllerOn(...MESH.slice(0, 2), tcp, route4, SHOP_SERVICE, given);
    expect(statusOf()?.[0]?.[3]).toBe(SUPPORTED);
  });
});

describe('the condition FailoverSupported of a MeshRoutePolicy for a rule with a Service', () => {
  const group = 'gateway.networking.k8s.io';
  const envoyGateway = (kind: string, name: string, spec: Fields) =>
    named({ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind, spec }, name);
  const routedBy = (targetRef: Fields, spec: Fields = { routingType: 'Service' }) =>
    envoyGateway('BackendTrafficPolicy', 'default/routing', {
      targetRefs: [{ group, ...targetRef }],
      ...spec,
    });
  const WORLD = [
    ...[...MESH.slice(0, 3), openGateway('default/b'), SHOP_SERVICE],
    to(['public', 'b'], { rules: [{ backendRefs: [meshBackend(), SHOP] }] }),
    levels([SHOP], [HOME]),
  ];
  const WHY =
    'False ServiceInRule: Service default/shop:80 is a backend of the route: while it has no ready endpoints, Envoy Gateway fails its share of the requests, ';
  const FIX = 'remove the Service from backendRefs and name it in spec.failover.levels alone';

  it('is False by default, with the policy to apply, and then True', async () => {
    const { statusOf, put, events } = await controllerOn(...WORLD);
    const text = statusOf()?.[0]?.[3] ?? '';
    expect(text).toContain(`${WHY}unless its routing type is Service: ${FIX}, or apply {`);
    const given = JSON.parse(text.replace(/^.* or apply /, '')) as Fields;
    expect(given).toEqual({
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'BackendTrafficPolicy',
      metadata: { name: 'web-service-routing' },
      spec: {
        targetRefs: [{ group, kind: 'HTTPRoute', name: 'web' }],
        ...{ mergeType: 'StrategicMerge', routingType: 'Service' },
      },
    });
    await put(named(given, 'default/web-service-routing'));
    expect(statusOf()?.map(([, , , supported]) => supported)).toEqual([SUPPORTED, SUPPORTED]);
    expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual([
      'Warning ServiceInRule',
      'Normal Supported',
    ]);
  });

  const filters = [{ type: 'RequestHeaderModifier', requestHeaderModifier: { remove: ['cookie'] } }];

  it.each<readonly [string, string, string, readonly object[]]>([
    [
      'a BackendTrafficPolicy of the Gateway prefers zones',
      'BackendTrafficPolicy default/zones sets zoneAware',
      'remove loadBalancer.zoneAware from it',
      [
        envoyGateway('BackendTrafficPolicy', 'default/zones', {
          targetRefs: [{ group, kind: 'Gateway', name: 'public' }],
          loadBalancer: { type: 'RoundRobin', zoneAware: { preferLocal: {} } },
        }),
      ],
    ],
    [
      'the Service prefers its zone',
      'Service default/shop:80 prefers its zone',
      'remove trafficDistribution or the topology mode from it',
      [{ ...SHOP_SERVICE, spec: { trafficDistribution: 'PreferClose', ports: [{ port: 80 }] } }],
    ],
    [
      'a backend has filters',
      'MeshEndpoints default/web:8080 has filters',
      'move them to the filters of the rule',
      [
        to(['public'], {
          rules: [{ backendRefs: [meshBackend({ filters }), SHOP] }],
        }),
      ],
    ],
  ])('is False where %s, whatever the routing type is', async (_, why, fix, objects) => {
    const routing = { routingType: 'Service', mergeType: 'StrategicMerge' };
    const byService = routedBy({ kind: 'HTTPRoute', name: 'web' }, routing);
    const { statusOf } = await controllerOn(...WORLD, byService, ...objects);
    expect(statusOf()?.[0]?.[3]).toBe(
      `False DividedRule: spec.rules[0]: requests are divided by weight, and no level is used: each backend of the rule has an Envoy cluster of its own, because ${why}: ${fix}, or keep one MeshEndpoints in backendRefs, and name Services in spec.failover.levels alone`,
    );
  });

  it('is True at a Gateway whose policy or EnvoyProxy has the routing type Service, and follows them', async () => {
    const { statusOf, put } = await controllerOn(...WORLD);
    const supported = () =>
      statusOf()
        ?.filter(([, , , text]) => text === SUPPORTED)
        .map(([gateway]) => gateway);
    expect(supported()).toEqual([]);
    await put(routedBy({ kind: 'Gateway', name: 'public' }));
    expect(supported()).toEqual(['Gateway default/public']);
    const parametersRef = { group: 'gateway.envoyproxy.io', kind: 'EnvoyProxy', name: 'all' };
    await put(envoyGateway('EnvoyProxy', 'default/all', {}));
    await put(gatewayObject('GatewayClass', 'mesh', { controllerName: 'example.com/a', parametersRef }));
    expect(supported()).toEqual(['Gateway default/public']);
    await put(envoyGateway('EnvoyProxy', 'default/all', { routingType: 'Service' }));
    expect(supported()).toEqual(['Gateway default/b', 'Gateway default/public']);
  });

  it('names the policy that the route has, because another one would not apply', async () => {
    const { statusOf } = await controllerOn(...WORLD, routedBy({ kind: 'HTTPRoute', name: 'web' }, {}));
    expect(statusOf()?.[0]?.[3]).toContain(
      `${FIX}, or set spec.routingType to Service in BackendTrafficPolicy default/routing`,
    );
  });

  it('is False for a headless Service, whatever the routing type is', async () => {
    const headless = { spec: { clusterIP: 'None', ports: [{ port: 80 }] } };
    const { statusOf, put } = await controllerOn(...WORLD, routedBy({ kind: 'HTTPRoute', name: 'web' }));
    expect(statusOf()?.[0]?.[3]).toBe(SUPPORTED);
    await put({ ...SHOP_SERVICE, ...headless });
    const why = WHY.replace('of the route:', 'of the route, and headless:');
    expect(statusOf()?.[0]?.[3]).toBe(`${why}whatever its routing type is: ${FIX}`);
  });
});

it('the controller may only read MeshRoutePolicies and write their status', () => {
  expect(access.cluster.map(({ resources, verbs }) => [resources, verbs])).toEqual([
    [['meshroutepolicies'], ['get']],
    [['meshroutepolicies/status'], ['patch']],
  ]);
});
