import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResourceKind } from '../../src/api/key.ts';
import type { Problem } from '../../src/api/problem.ts';
import { severityOf } from '../../src/api/problem.ts';
import { SERVED } from '../../src/kubernetes/served-kinds.ts';
import { ResourceStore } from '../../src/store/store.ts';
import { trafficIndexes } from '../../src/store/traffic/resources.ts';
import { check } from '../../src/tools/check/check.ts';
import { Catalog, servedObjects } from '../../src/tools/check/objects.ts';
import { trackingOf } from '../../src/tools/check/traffic.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { routeTracer } from '../../src/tools/trace/routes.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import { meshBackend, named, openGateway, route } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshRoutePolicy, meshTailnet } from '../support/objects.ts';
import { readCorpus } from '../support/schema/corpus.ts';
import { cacheOver } from '../support/store/traffic.ts';
import { condition } from '../support/tools/installation.ts';
import { serviceObject, sliceObject } from '../support/traffic/objects.ts';
import { runs } from '../support/runs.ts';

/** The same worlds in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

const EVERYTHING = new Set(Object.keys(SERVED) as ResourceKind[]);
const GATEWAY = 'default/public';

/** What each tool makes of the objects of a cluster, and what the Envoys of the Gateway get. */
function answersFor(objects: readonly object[]) {
  const served = servedObjects([openGateway(GATEWAY), ...objects], EVERYTHING);
  expect(served.objects.filter(({ resource }) => !resource)).toEqual([]);
  const catalog = new Catalog(served);
  const store = new ResourceStore(trafficIndexes, failure => expect(failure).toBeUndefined());
  for (const { resource } of served.objects) if (resource) store.put(resource, true);
  const eds = cacheOver(store, { settingsFrom: 'MeshGateway' });
  const request = parseRequest('http://web.example.com/', { method: 'GET', headers: [] });
  return {
    rules: routeTracer(trackingOf(catalog), {}, catalog)().flatMap(each => each.outcome.rules),
    findings: check(served).findings,
    ways: trace(served, request, GATEWAY),
    endpointsOf: (cluster: string) => eds.snapshot(cluster, GATEWAY)?.assignment.localities ?? [],
  };
}

function idsOf(problems: readonly Problem[]): string[] {
  return problems.map(({ reason, about, at, endpoint }) => JSON.stringify([reason, about, at, endpoint]));
}

/** Whether the tools and EDS contradict each other about objects of which each is valid. */
function expectAgreement(objects: readonly object[]): void {
  const { rules, findings, ways, endpointsOf } = answersFor(objects);
  for (const { rule, localities, reaches, isServed, problems, undecided } of rules) {
    expect(localities).toEqual(endpointsOf(rule.cluster.text));
    expect(undecided).toEqual([]);
    expect(idsOf(findings)).toEqual(expect.arrayContaining(idsOf(problems)));
    // A tool that has nothing against a rule lets users expect that all of its requests are served.
    if (reaches !== 'all') expect(problems.map(severityOf)).not.toEqual([]);
    const usable = localities.filter(({ endpoints }) =>
      endpoints.some(({ health }) => health === 'HEALTHY' || health === 'UNKNOWN'),
    );
    if (usable.length === 0) expect(isServed).toBe(false);
    if (usable.length === 0 && !rule.isMixed) expect(reaches).toBe('none');
  }
  const known = new Set(idsOf(rules.flatMap(({ problems }) => problems)));
  const ofRoutes = findings.filter(each => severityOf(each) === 'error' && each.about?.kind === 'HTTPRoute');
  const unexplained = idsOf(ofRoutes).filter(id => !known.has(id));
  expect(unexplained).toEqual([]);
  for (const way of ways) {
    const traced = rules.find(
      ({ rule }) => rule === way.traffic?.rule || rule.cluster.text === way.traffic?.rule.cluster.text,
    );
    if (traced) expect(way.reaches).toBe(traced.reaches);
    const broken = way.steps.filter(({ is }) => is === 'broken');
    if (way.reaches === 'none') expect(broken).not.toEqual([]);
    if (broken.length === 0) expect(way.reaches).toBe('all');
  }
}

const aPool = fc.constantFrom('ready', 'broken', 'absent', 'external');

function tailnetOf(name: string, pool: typeof aPool extends fc.Arbitrary<infer P> ? P : never): object {
  const spec = { tailnet: `${name}.ts.net` };
  if (pool === 'external')
    return named(meshTailnet({ ...spec, pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), name);
  const isReady = pool === 'ready';
  const conditions = [
    condition('PoolReady', isReady ? 'True' : 'False', isReady ? 'PoolReady' : 'CrashLoop'),
  ];
  const proxyAddress = pool === 'absent' ? {} : { proxyAddress: '10.96.0.7:1055' };
  const status = { pool: { ready: isReady ? 2 : 0, desired: 2, ...proxyAddress }, conditions };
  return { ...named(meshTailnet({ ...spec, pool: { mode: 'Managed' } }), name), status };
}

const aBackend = fc.record({
  is: fc.constantFrom('mesh', 'mesh', 'mesh', 'missing', 'service', 'empty-service', 'missing-service'),
  weight: fc.integer({ min: 0, max: 3 }),
  tailnet: fc.constantFrom('one', 'other', 'unknown'),
  hasPort: fc.constantFrom(true, true, true, false),
  members: fc.array(
    fc.record({
      health: fc.constantFrom('Healthy', 'Unhealthy', undefined),
      priority: fc.nat(1),
      place: fc.constantFrom('here', 'there'),
      protocol: fc.constantFrom('HTTP', 'HTTP', 'HTTP', 'gRPC', 'TCP'),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});

type Backend = typeof aBackend extends fc.Arbitrary<infer B> ? B : never;

const aWorld = fc.record({
  pools: fc.tuple(aPool, aPool),
  backends: fc.array(aBackend, { minLength: 1, maxLength: 3 }),
  policy: fc.option(
    fc.record({
      require: fc.constantFrom(undefined, undefined, 'here', 'nowhere'),
      prefer: fc.constantFrom(undefined, 'here', 'nowhere'),
      /** The order of the backends, each in a level of its own, after which come Services beyond the rule. */
      order: fc.constantFrom(undefined, 'as written', 'reversed'),
      beyond: fc.constantFrom(undefined, 'service', 'empty-service', 'missing-service'),
    }),
    { freq: 2 },
  ),
});

type World = typeof aWorld extends fc.Arbitrary<infer W> ? W : never;

/** The MeshRoutePolicy of the route, and the Service that it adds to the rule. */
function policyObjects(
  { require, prefer, order, beyond }: NonNullable<World['policy']>,
  refs: readonly Backend[],
): readonly object[] {
  const own = refs.map(({ is }, index) =>
    is === 'mesh' || is === 'missing'
      ? { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: `b${index}` }
      : { name: `b${index}`, port: 80 },
  );
  const inOrder = order === undefined ? [] : order === 'reversed' ? own.toReversed() : own;
  const last = beyond === undefined ? [] : [{ name: 'beyond', port: 80 }];
  const selector = (place: string) => ({ matchLabels: { place } });
  const policy = meshRoutePolicy({
    failover: { levels: [...inOrder, ...last].map(each => ({ backends: [each] })) },
    endpoints: {
      ...(require !== undefined && { require: selector(require) }),
      ...(prefer !== undefined && { prefer: [selector(prefer)] }),
    },
  });
  const services = {
    service: [serviceObject('beyond'), sliceObject('beyond', [{ addresses: ['10.2.0.1'] }])],
    'empty-service': [serviceObject('beyond'), sliceObject('beyond', [])],
    'missing-service': [],
  };
  return [named(policy, 'default/policy'), ...(beyond === undefined ? [] : services[beyond])];
}

/** The objects of a backend, and the reference to it. */
function backendOf({ is, weight, tailnet, hasPort, members }: Backend, index: number) {
  const name = `b${index}`;
  const port = hasPort ? 8080 : 81;
  if (is === 'service' || is === 'empty-service' || is === 'missing-service') {
    const addresses = is === 'service' ? [{ addresses: [`10.1.0.${index + 1}`] }] : [];
    const objects = [serviceObject(name), sliceObject(name, addresses)];
    return { ref: { name, port: 80, weight }, objects: is === 'missing-service' ? [] : objects };
  }
  const ref = meshBackend({ name, port, weight });
  if (is === 'missing') return { ref, objects: [] };
  const endpoints = members.map(({ priority, place, protocol }, at) =>
    endpoint({
      ...{ name: `e${at}`, meshIP: `100.64.${index}.${at + 1}`, priority, protocol },
      ...{ meshFQDN: `e${at}-${index}.${tailnet}.ts.net`, metadata: { place } },
      ...(protocol === 'HTTP' && { healthCheck: { enabled: true } }),
    }),
  );
  const entries = members.flatMap(({ health }, at) =>
    health === undefined ? [] : [{ name: `e${at}`, status: health }],
  );
  const object = named(meshEndpoints({ endpoints, tailnet: `${tailnet}.ts.net` }), `default/${name}`);
  return { ref, objects: [{ ...object, status: { endpoints: entries } }] };
}

describe('check, both forms of trace, and EDS agree', () => {
  it('about random objects', () => {
    fc.assert(
      fc.property(aWorld, ({ pools: [one, other], backends, policy }) => {
        const made = backends.map(backendOf);
        expectAgreement([
          ...[tailnetOf('one', one), tailnetOf('other', other)],
          ...made.flatMap(({ objects }) => objects),
          route('HTTPRoute', 'default/web', { rules: [{ backendRefs: made.map(({ ref }) => ref) }] }),
          ...(policy ? policyObjects(policy, backends) : []),
        ]);
      }),
      { ...runs(300), seed },
    );
  });

  const valid = readCorpus().filter(({ kind, faultAt }) => kind === 'MeshEndpoints' && faultAt === undefined);

  it.each(valid)('about a route to the object of $file', ({ object }) => {
    const { metadata, spec } = object as {
      readonly metadata: { readonly name: string; readonly namespace?: string };
      readonly spec: { readonly tailnet: string; readonly endpoints?: readonly { readonly port: number }[] };
    };
    const { name, namespace = 'default' } = metadata;
    const backendRefs = [...new Set(spec.endpoints?.map(({ port }) => port))].map(port =>
      meshBackend({ name, port }),
    );
    const pool = { mode: 'External', addresses: ['10.0.0.1:1055'] };
    expectAgreement([
      named(meshTailnet({ tailnet: spec.tailnet, pool }), 'main'),
      { ...(object as object), metadata: { ...metadata, namespace } },
      route('HTTPRoute', `${namespace}/web`, {
        parentRefs: [{ name: 'public', namespace: 'default' }],
        rules: [{ backendRefs: backendRefs.slice(0, 16) }],
      }),
    ]);
  });
});
