import { describe, expect, it } from 'vitest';
import type { ResourceKind } from '../../src/api/key.ts';
import { SERVED } from '../../src/kubernetes/served-kinds.ts';
import { servedObjects } from '../../src/tools/check/objects.ts';
import { parseRequest } from '../../src/tools/trace/request.ts';
import { trace } from '../../src/tools/trace/trace.ts';
import { meshBackend, named } from '../support/declared.ts';
import { endpoint, meshEndpoints, meshRoutePolicy, meshTailnet } from '../support/objects.ts';
import { gateway, routeOf } from '../support/tools/traced.ts';
import { condition } from '../support/tools/installation.ts';
import { serviceObject, sliceObject } from '../support/traffic/objects.ts';

const EVERYTHING = new Set(Object.keys(SERVED) as ResourceKind[]);

/** A MeshTailnet with a managed pool that is ready or not. */
function tailnetOf(name: string, isReady: boolean): object {
  const pool = { ready: isReady ? 2 : 0, desired: 2, proxyAddress: '10.96.0.7:1055' };
  const conditions = [
    condition('PoolReady', isReady ? 'True' : 'False', isReady ? 'PoolReady' : 'CrashLoop'),
  ];
  const spec = { tailnet: `${name}.ts.net`, pool: { mode: 'Managed' } };
  return { ...named(meshTailnet(spec), name), status: { pool, conditions } };
}

type Health = 'Healthy' | 'Unhealthy';

/** A MeshEndpoints with an endpoint for each health, whose priorities are their indexes. */
function servicesOf(name: string, tailnet: string, ...healths: readonly Health[]): object {
  const endpoints = healths.map((_, index) =>
    endpoint({
      ...{ name: `e${index}`, meshIP: `100.64.${name.length}.${index + 1}`, priority: index },
      ...{ meshFQDN: `e${index}.${tailnet}.ts.net`, metadata: { place: 'here' } },
      healthCheck: { enabled: true },
    }),
  );
  const status = healths.map((health, index) => ({ name: `e${index}`, status: health }));
  const object = meshEndpoints({ endpoints, tailnet: `${tailnet}.ts.net` });
  return { ...named(object, `default/${name}`), status: { endpoints: status } };
}

/** A MeshEndpoints of two healthy endpoints: one in the mesh, and one with an externalTarget of a better priority. */
function externalFirst(): object {
  const externalTarget = 'api.example.com:443';
  const endpoints = [
    endpoint({ name: 'mesh', meshIP: '100.64.0.1', priority: 9 }),
    endpoint({ name: 'external', meshIP: '100.64.0.1', priority: 5, externalTarget }),
  ];
  const external = { name: 'external', externalTarget, resolvedAddresses: ['1.1.1.1'] };
  const status = [{ name: 'mesh' }, external].map(entry => ({ ...entry, status: 'Healthy' }));
  return { ...named(meshEndpoints({ endpoints }), 'default/web'), status: { endpoints: status } };
}

const service = named({ apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } }, 'default/shop');
const ready = tailnetOf('example', true);
const toWeb = routeOf({ rules: [{ backendRefs: [meshBackend()] }] });

/** The ways of a request by the objects of a cluster. */
function waysOf(...objects: readonly object[]) {
  const request = parseRequest('http://web.example.com/', { method: 'GET', headers: [] });
  const served = servedObjects([gateway, ...objects], EVERYTHING);
  expect(served.findings).toEqual([]);
  return trace(served, request, undefined);
}

describe('of the requests of a trace', () => {
  it.each<readonly [string, 'all' | 'some' | 'none', readonly object[]]>([
    ['all reach a healthy endpoint', 'all', [ready, servicesOf('web', 'example', 'Healthy'), toWeb]],
    ['none reaches an unhealthy one', 'none', [ready, servicesOf('web', 'example', 'Unhealthy'), toWeb]],
    [
      'all reach a healthy one behind an unhealthy one',
      'all',
      [ready, servicesOf('web', 'example', 'Unhealthy', 'Healthy'), toWeb],
    ],
    [
      'none reaches an endpoint whose pool is not ready',
      'none',
      [tailnetOf('example', false), servicesOf('web', 'example', 'Healthy'), toWeb],
    ],
    [
      'some reach one where one of two pools is not ready',
      'some',
      [
        ...[ready, tailnetOf('other', false)],
        ...[servicesOf('web', 'example', 'Healthy'), servicesOf('other', 'other', 'Healthy')],
        routeOf({ rules: [{ backendRefs: [meshBackend(), meshBackend({ name: 'other' })] }] }),
      ],
    ],
    [
      'none reaches an endpoint without a MeshEndpoints',
      'none',
      [ready, routeOf({ rules: [{ backendRefs: [meshBackend()] }] })],
    ],
    [
      'some reach a Service beside one that does not exist',
      'some',
      [
        ...[ready, service],
        routeOf({
          rules: [
            {
              backendRefs: [
                { name: 'shop', port: 80 },
                { name: 'gone', port: 80 },
              ],
            },
          ],
        }),
      ],
    ],
    [
      'some reach an endpoint beside a Service without endpoints',
      'some',
      [
        ...[ready, service, servicesOf('web', 'example', 'Healthy')],
        routeOf({ rules: [{ backendRefs: [meshBackend(), { name: 'shop', port: 80 }] }] }),
      ],
    ],
    [
      'all reach an endpoint or a pod of a Service',
      'all',
      [
        ...[ready, service, sliceObject('shop', [{ addresses: ['10.0.0.5'] }])],
        servicesOf('web', 'example', 'Healthy'),
        routeOf({ rules: [{ backendRefs: [meshBackend(), { name: 'shop', port: 80 }] }] }),
      ],
    ],
    [
      'all reach an endpoint whose backendRef has a filter that is ignored',
      'all',
      [
        ...[ready, servicesOf('web', 'example', 'Healthy')],
        routeOf({
          rules: [
            {
              backendRefs: [
                meshBackend({ filters: [{ type: 'URLRewrite', urlRewrite: { hostname: 'a' } }] }),
              ],
            },
          ],
        }),
      ],
    ],
    [
      'none reaches an endpoint by a rule that mirrors to MeshEndpoints',
      'none',
      [
        ...[ready, servicesOf('web', 'example', 'Healthy')],
        routeOf({
          rules: [
            {
              filters: [{ type: 'RequestMirror', requestMirror: { backendRef: meshBackend() } }],
              backendRefs: [meshBackend()],
            },
          ],
        }),
      ],
    ],
    [
      'none reaches an endpoint that a policy does not select',
      'none',
      [
        ...[ready, servicesOf('web', 'example', 'Healthy'), toWeb],
        named(
          meshRoutePolicy({ endpoints: { require: { matchLabels: { place: 'elsewhere' } } } }),
          'default/policy',
        ),
      ],
    ],
    [
      'none reaches an endpoint by a rule without a backend that has a weight',
      'none',
      [
        ...[ready, servicesOf('web', 'example', 'Healthy')],
        routeOf({ rules: [{ backendRefs: [meshBackend({ weight: 0 })] }] }),
      ],
    ],
    [
      'all reach an endpoint beside a backend without a weight that does not exist',
      'all',
      [
        ...[ready, servicesOf('web', 'example', 'Healthy')],
        routeOf({
          rules: [
            {
              backendRefs: [
                meshBackend(),
                meshBackend({ name: 'gone', weight: 0 }),
                { name: 'gone', port: 80, weight: 0 },
              ],
            },
          ],
        }),
      ],
    ],
    [
      'all reach an endpoint where mesh pods that are not ready lead to a later priority',
      'all',
      [
        ...[ready, tailnetOf('other', false)],
        ...[servicesOf('web', 'example', 'Healthy'), servicesOf('other', 'other', 'Unhealthy', 'Healthy')],
        routeOf({ rules: [{ backendRefs: [meshBackend(), meshBackend({ name: 'other' })] }] }),
      ],
    ],
    [
      'all reach an externalTarget before an endpoint whose pool is not ready',
      'all',
      [tailnetOf('example', false), externalFirst(), toWeb],
    ],
    ['none reaches an endpoint without a route', 'none', [ready, servicesOf('web', 'example', 'Healthy')]],
  ])('%s', (_what, expected, objects) => {
    expect(waysOf(...objects).map(({ reaches }) => reaches)).toEqual([expected]);
  });

  it('steps have the priorities of externalTargets and of what has the same meshIP', () => {
    const [way] = waysOf(ready, externalFirst(), toWeb);
    const lines = way?.steps.filter(({ name }) => name === 'endpoint');
    expect(lines?.map(({ text }) => text)).toEqual([
      'mesh at 100.64.0.1:8080: HEALTHY, priority 1: for what those before it cannot take',
      'external at api.example.com:443: HEALTHY',
    ]);
  });

  it('steps have the priority, and the Services that a policy adds', () => {
    const web = { group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web' };
    const failover = { levels: [{ backends: [{ name: 'shop', port: 80 }] }, { backends: [web] }] };
    const [way] = waysOf(
      ...[ready, tailnetOf('other', true), servicesOf('web', 'example', 'Healthy', 'Healthy'), toWeb],
      ...[serviceObject('shop'), sliceObject('shop', [{ addresses: ['10.0.0.5'] }])],
      named(meshRoutePolicy({ failover }), 'default/policy'),
    );
    expect(way?.reaches).toBe('all');
    const lines = way?.steps.filter(({ name }) => name === 'endpoint' || name === 'backend');
    expect(lines?.map(({ is, text }) => `${is} ${text}`)).toEqual([
      'ok MeshEndpoints default/web, port 8080',
      'ok e0 at 100.64.3.1:8080: HEALTHY, priority 1: for what those before it cannot take',
      'ok e1 at 100.64.3.2:8080: HEALTHY, priority 2: for what those before it cannot take',
      'ok Service default/shop, port 80 of MeshRoutePolicy policy (not followed further)',
    ]);
  });
});
