import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import type { GatewayResponse } from '../../../lab/gateway/envoy.ts';
import { until } from '../../../lab/process/wait.ts';
import { GROUP } from '../../../src/api/generated/kinds.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { remoteEndpoints } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { webService } from '../../support/cluster/objects.ts';
import { gatewayObject, named, route } from '../../support/declared.ts';
import { IS_LONG } from '../../support/eventually.ts';
import { callGrpc, textMessage } from '../../support/lab/grpc.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

let scene: InstallScene;
beforeAll(async () => {
  scene = await installScene();
  await scene.use();
  const { client, namespace } = scene;
  await applyAll(client, [
    ...webService(namespace, POD),
    remoteEndpoints(testCluster(), 'web-2', `${namespace}/second`),
    { ...service('empty'), spec: { selector: { app: 'none' }, ports: [{ port: 80 }] } },
    { ...service('near'), spec: { ...POD_SERVICE, trafficDistribution: 'PreferClose' } },
    envoyGateway('Backend', 'named', {
      endpoints: [{ fqdn: { hostname: `${POD}.${namespace}.svc.cluster.local`, port: 80 } }],
    }),
  ]);
  await scene.settled();
});
afterAll(async () => {
  await scene.end();
});

const POD = 'pod';
const POD_SERVICE = { selector: { app: POD }, ports: [{ port: 80, targetPort: 8080 }] };

function service(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'Service', metadata: { namespace: scene.namespace, name } };
}

const envoyGateway = (kind: string, name: string, spec: object): KubeObject => ({
  apiVersion: 'gateway.envoyproxy.io/v1alpha1',
  kind,
  metadata: { namespace: scene.namespace, name },
  spec,
});

const hostOf = (name: string) => `${name}.example.com`;

const web = (name: string) => remoteOf(testCluster(), name);
const mesh = (weight: number, more: object = {}) => ({
  ...{ group: GROUP, kind: 'MeshEndpoints', name: 'web', port: web('web-1').ports['http'], weight },
  ...more,
});
const second = (weight: number, more: object = {}) =>
  mesh(weight, { name: 'second', port: web('web-2').ports['http'], ...more });
const pod = (weight: number, more: object = {}) => ({ name: POD, port: 80, weight, ...more });

/** A route with one rule, for a host of its own. */
async function applyRule(
  name: string,
  backendRefs: readonly object[],
  gateway = 'public',
): Promise<KubeObject> {
  const parentRefs = [{ name: gateway }];
  const spec = { parentRefs, hostnames: [hostOf(name)], rules: [{ backendRefs }] };
  return await scene.client.apply(route('HTTPRoute', `${scene.namespace}/${name}`, spec) as KubeObject);
}

type Answer = { readonly backend: string; readonly headers: Readonly<Record<string, readonly string[]>> };

/** What answered: a device, the pod, or the status of a failure; with the values of headers that filters set. */
async function answererOf(host: string): Promise<string> {
  const response = await scene.request(host);
  return response.status === 200 ? answererIn(response) : String(response.status);
}

function answererIn({ body, headers }: GatewayResponse): string {
  const answer = JSON.parse(body) as Answer;
  const set = [...(answer.headers['X-Share'] ?? []), ...[headers['x-answer'] ?? []].flat()];
  return [answer.backend, ...set].join(' ');
}

const AT_ONCE = 20;

type Shares = Readonly<Record<string, number>>;

/** How many of the requests were answered by each. */
async function sharesOf(requests: number, ask: () => Promise<string>): Promise<Shares> {
  const counts: Record<string, number> = {};
  const one = async () => {
    const by = await ask();
    counts[by] = (counts[by] ?? 0) + 1;
  };
  for (let sent = 0; sent < requests; sent += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  return counts;
}

const REQUESTS = IS_LONG ? 2_000 : 500;

/** More than five standard deviations of the share of half of the requests. */
const TOLERANCE = IS_LONG ? 120 : 60;

/** Waits until all shares have answered, and then expects each to have its part of the requests. */
async function expectShares(ask: () => Promise<string>, percentages: Shares): Promise<void> {
  const wanted = Object.keys(percentages).sort();
  await until(`answers of ${wanted.join(', ')}`, async note => {
    const seen = Object.keys(await sharesOf(5 * AT_ONCE, ask)).sort();
    note(seen.join(', '));
    return seen.join() === wanted.join();
  });
  const shares = await sharesOf(REQUESTS, ask);
  console.log(JSON.stringify(shares));
  expect(Object.keys(shares).sort()).toEqual(wanted);
  for (const [by, percentage] of Object.entries(percentages))
    expect(Math.abs((shares[by] ?? 0) - (percentage / 100) * REQUESTS), by).toBeLessThan(TOLERANCE);
}

const headers = (type: 'Request' | 'Response', name: string, value: string) => ({
  type: `${type}HeaderModifier`,
  [`${type.toLowerCase()}HeaderModifier`]: { set: [{ name, value }] },
});
const share = (value: string) => ({ filters: [headers('Request', 'x-share', value)] });

const BACKEND = { group: 'gateway.envoyproxy.io', kind: 'Backend' };

const CASES: readonly (readonly [string, () => readonly object[], Shares])[] = [
  [
    'a Service that does not exist',
    () => [mesh(40), pod(30), { name: 'gone', port: 80, weight: 30 }],
    { 'web-1': 40, pod: 30, 500: 30 },
  ],
  [
    'no other backend that exists',
    () => [mesh(70), { name: 'gone', port: 80, weight: 30 }],
    { 'web-1': 70, 500: 30 },
  ],
  [
    'a Service without endpoints',
    () => [mesh(70), { name: 'empty', port: 80, weight: 30 }],
    { 'web-1': 70, 503: 30 },
  ],
  [
    'a MeshEndpoints that does not exist',
    () => [mesh(70), mesh(30, { name: 'gone' })],
    { 'web-1': 70, 500: 30 },
  ],
  [
    'a Service and a MeshEndpoints of another namespace without ReferenceGrants',
    () => [
      mesh(40),
      { name: 'kubernetes', namespace: 'default', port: 443, weight: 20 },
      mesh(40, { namespace: 'default' }),
    ],
    { 'web-1': 40, 500: 60 },
  ],
  [
    'a Backend that does not exist',
    () => [mesh(70), { ...BACKEND, name: 'gone', weight: 30 }],
    { 'web-1': 70, 500: 30 },
  ],
  [
    'a Backend that has a host name',
    () => [{ ...BACKEND, name: 'named', weight: 30 }, mesh(50), second(20)],
    { pod: 30, 'web-1': 50, 'web-2': 20 },
  ],
  [
    'a Service that prefers its zone',
    () => [mesh(60), { name: 'near', port: 80, weight: 40 }],
    { 'web-1': 60, pod: 40 },
  ],
  ['a Service with filters', () => [mesh(70), pod(30, share('pod'))], { 'web-1': 70, 'pod pod': 30 }],
  [
    'filters of the MeshEndpoints alone',
    () => [mesh(1, { filters: [headers('Request', 'x-share', 'a%'), headers('Response', 'x-answer', 'b')] })],
    { 'web-1 a% b': 100 },
  ],
  [
    'filters of several MeshEndpoints',
    () => [mesh(50, share('first')), second(20, share('second')), mesh(30)],
    { 'web-1 first': 50, 'web-2 second': 20, 'web-1': 30 },
  ],
  [
    'filters of the MeshEndpoints beside a Service',
    () => [mesh(60, share('mesh')), pod(40)],
    { 'web-1 mesh': 60, pod: 40 },
  ],
  [
    'filters of all backends',
    () => [mesh(60, share('mesh')), pod(40, share('pod'))],
    { 'web-1 mesh': 60, 'pod pod': 40 },
  ],
];

describe('a rule of an HTTPRoute shares its requests by weight', () => {
  it.each(CASES)('with %s', async (what, backendRefs, percentages) => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const name = what.toLowerCase().replaceAll(' ', '-');
    await applyRule(name, backendRefs());
    await expectShares(() => answererOf(hostOf(name)), percentages);
  });

  it.each([
    ['prefers the zone', 'zone', { preferLocal: { minEndpointsThreshold: 1 } }],
    ['gives zones weights', 'zones', { weightedZones: [{ zone: 'a', weight: 1 }] }],
  ])('with a policy that %s', async (_, name, zoneAware) => {
    const { kind } = await applyRule(name, [mesh(60), pod(40)]);
    const targetRefs = [{ group: 'gateway.networking.k8s.io', kind, name }];
    await scene.client.apply(
      envoyGateway('BackendTrafficPolicy', name, {
        targetRefs,
        loadBalancer: { type: 'RoundRobin', zoneAware },
      }),
    );
    await expectShares(() => answererOf(hostOf(name)), { 'web-1': 60, pod: 40 });
  });
});

/** Envoy Gateway gives Services clusters that all routes of a Gateway share, and MeshEndpoints their own. */
describe('a rule of a Gateway that merges backends shares its requests by weight', () => {
  const MERGED = 'merged';
  let address: string;
  beforeAll(async () => {
    const { client, namespace } = scene;
    const parametersRef = { group: BACKEND.group, kind: 'EnvoyProxy', name: MERGED };
    const listeners = [{ name: 'http', port: 80, protocol: 'HTTP' }];
    await applyAll(client, [
      envoyGateway('EnvoyProxy', MERGED, { mergeType: 'StrategicMerge', mergeBackends: {} }),
      gatewayObject('Gateway', `${namespace}/${MERGED}`, {
        ...{ gatewayClassName: 'mesh', infrastructure: { parametersRef }, listeners },
      }) as KubeObject,
    ]);
    await applyRule('merged-pod', [pod(1)], MERGED);
    address = await gatewayAddress(client, { namespace, name: MERGED });
  });

  const ask = (name: string) => async () => {
    const response = await requestThrough(address, { host: hostOf(name), path: '/hello' });
    return response.status === 200 ? answererIn(response) : String(response.status);
  };

  it.each<readonly [string, () => readonly object[], Shares]>([
    ['MeshEndpoints alone', () => [mesh(1)], { 'web-1': 100 }],
    ['several MeshEndpoints', () => [mesh(60), second(40)], { 'web-1': 60, 'web-2': 40 }],
    ['a Service', () => [mesh(60), pod(40)], { 'web-1': 60, pod: 40 }],
    ['a Service of weight 0', () => [mesh(60), pod(0)], { 'web-1': 100 }],
    [
      'a Backend that has a host name',
      () => [mesh(50), second(20), { ...BACKEND, name: 'named', weight: 30 }],
      { pod: 30, 'web-1': 50, 'web-2': 20 },
    ],
    [
      'a Service that does not exist',
      () => [mesh(40), pod(30), { name: 'gone', port: 80, weight: 30 }],
      { 'web-1': 40, pod: 30, 500: 30 },
    ],
    [
      'filters of the MeshEndpoints beside a Service',
      () => [mesh(60, share('mesh')), pod(40)],
      { 'web-1 mesh': 60, pod: 40 },
    ],
  ])('with %s', async (what, backendRefs, percentages) => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    const name = `merged-${what.toLowerCase().replaceAll(' ', '-')}`;
    await applyRule(name, backendRefs(), MERGED);
    await expectShares(ask(name), percentages);
  });
});

describe('a rule of a GRPCRoute fails for one share alone', () => {
  it.each<readonly [string, string, (grpc: object) => readonly object[]]>([
    ['a Service does not exist', 'gone', () => [{ name: 'gone', port: 80, weight: 30 }]],
    ['a MeshEndpoints does not exist', 'gone-mesh', grpc => [{ ...grpc, name: 'gone', weight: 30 }]],
    [
      'a MeshEndpoints may not be referred to',
      'foreign',
      grpc => [{ ...grpc, namespace: 'default', weight: 30 }],
    ],
    ['a Backend does not exist', 'gone-backend', () => [{ ...BACKEND, name: 'gone', weight: 30 }]],
  ])('where %s', async (_, name, others) => {
    const { client, namespace } = scene;
    const { address, fqdn, ports } = web('web-1');
    const port = ports['grpc'];
    const endpoints = [endpoint({ meshIP: address, meshFQDN: fqdn, port, protocol: 'gRPC' })];
    const grpc = mesh(70, { name: 'grpc', port, ...share('grpc') });
    const host = hostOf(`grpc-${name}`);
    await applyAll(client, [
      named(meshEndpoints({ endpoints }), `${namespace}/grpc`) as KubeObject,
      route('GRPCRoute', `${namespace}/grpc-${name}`, {
        hostnames: [host],
        rules: [{ backendRefs: [grpc, ...others(mesh(30, { name: 'grpc', port }))] }],
      }) as KubeObject,
    ]);
    const [ip = '', listener = '80'] = (await gatewayAddress(client, { namespace, name: 'public' })).split(
      ':',
    );
    const ask = async () => {
      const socket = connect(Number(listener), ip);
      const { status } = await callGrpc(socket, host, '/lab.v1.Echo/Say', textMessage('hello'));
      return `grpc-status ${status}`;
    };
    await expectShares(ask, { 'grpc-status 0': 70, 'grpc-status 14': 30 });
  });
});

describe('while a Service of the rule is deleted and created again', () => {
  it.each([
    ['alone', 'canary', () => []],
    ['beside another Service', 'canary-and-pod', () => [pod(1_000)]],
  ])('no request for MeshEndpoints fails, %s', async (_, name, others) => {
    const { client } = scene;
    const [, declared] = webService(scene.namespace, POD);
    if (!declared) throw new Error('there is no Service');
    const canary = { ...declared, metadata: { ...declared.metadata, name } };
    await client.apply(canary);
    await applyRule(name, [mesh(999_000), ...others(), { name, port: 80, weight: 1 }]);
    await until('an answer', async () => (await answererOf(hostOf(name))) === 'web-1');
    const load = startLoad(8, async () => {
      const by = await answererOf(hostOf(name));
      if (by !== 'web-1' && by !== POD) throw new Error(by);
    });
    const more = async (count: number) => {
      const before = load.attempts();
      await until(`${count} requests`, () => Promise.resolve(load.attempts() > before + count));
    };
    await more(500);
    await client.remove({ apiVersion: 'v1', kind: 'Service', namespace: scene.namespace, name });
    await more(3_000);
    await client.apply(canary);
    await more(3_000);
    const { tookMs, failures } = await load.end();
    console.log(`${tookMs.length} went well, ${failures.length} failed`);
    expect(failures).toEqual([]);
  });
});

/** Only by chance fast enough to meet a cluster that lacks a socket, which test/traffic proves without. */
const inLongForm = IS_LONG ? it : () => undefined;

inLongForm(
  'no request fails while weights go from a Service to MeshEndpoints and back, step by step',
  async () => {
    const name = 'steps';
    const up = Array.from({ length: 11 }, (_, index) => index * 10);
    await applyRule(name, [pod(100), mesh(0)]);
    await until('an answer', async () => (await answererOf(hostOf(name))) === POD);
    let last: string[] = [];
    let weight = 0;
    const load = startLoad(8, async () => {
      const response = await scene.request(hostOf(name));
      if (response.status !== 200) throw new Error(`${response.status} ${response.body} at ${weight}%`);
      last = [...last, answererIn(response)].slice(-200);
    });
    for (weight of [...up, ...up.toReversed()]) {
      await applyRule(name, [pod(100 - weight), mesh(weight)]);
      await until(`about ${weight}% of 200 requests`, () => {
        const share = last.filter(by => by === 'web-1').length / 2;
        return Promise.resolve(Math.abs(share - weight) < (weight % 100 === 0 ? 1 : 15));
      });
    }
    const { tookMs, failures } = await load.end();
    console.log(`${tookMs.length} went well, ${failures.length} failed`);
    expect(failures).toEqual([]);
  },
);

it('a rule that mirrors requests to MeshEndpoints fails as a whole, because Envoy Gateway refuses the mirror', async () => {
  const requestMirror = { backendRef: { ...second(1), weight: undefined } };
  const rules = [{ filters: [{ type: 'RequestMirror', requestMirror }], backendRefs: [mesh(1)] }];
  const spec = { hostnames: [hostOf('mirror')], rules };
  await scene.client.apply(route('HTTPRoute', `${scene.namespace}/mirror`, spec) as KubeObject);
  await expectShares(() => answererOf(hostOf('mirror')), { 500: 100 });
});
