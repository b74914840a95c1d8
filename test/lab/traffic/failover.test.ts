import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { readConfigDump, requestThrough } from '../../../lab/gateway/envoy.ts';
import type { KubernetesObject } from '../../../lab/gateway/objects.ts';
import { until } from '../../../lab/process/wait.ts';
import { named } from '../../support/declared.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { meshEndpoint, meshEndpoints, meshRoute, meshTailnet } from '../../support/lab/traffic/objects.ts';
import { startSystem } from '../../support/lab/traffic/system.ts';
import type { System } from '../../support/lab/traffic/system.ts';
import { meshRoutePolicy } from '../../support/objects.ts';
import { serviceObject, sliceObject } from '../../support/traffic/objects.ts';

const HOST = 'web.test';

/** Stands for the pods of a Service. */
const pods = createServer((_, response) => response.end('pod'));

let system: System;
beforeAll(async () => {
  system = await startSystem();
  // Each address of 127.0.0.0/8 stands for a pod, and no connection is closed while Envoy may use it.
  pods.keepAliveTimeout = 60_000;
  await new Promise<void>(resolve => pods.listen(0, '0.0.0.0', resolve));
  const web = remoteOf(system.lab, 'web-1');
  const port = web.ports['http'] ?? 0;
  system.put('web', [
    meshTailnet(system.lab, [system.lab.proxy]),
    meshEndpoints(system.lab, 'web', [meshEndpoint(web, 'http')]),
    meshRoute(system.gateway, {
      ...{ name: 'web', kind: 'HTTPRoute', listener: 'http', hostnames: [HOST] },
      refs: [{ name: 'web', port }],
    }),
  ]);
  const levels = [
    { backends: [{ kind: 'Service', name: 'shop', port: 80 }] },
    { backends: [{ group: 'mesh-gateway.dev', kind: 'MeshEndpoints', name: 'web' }] },
  ];
  system.put('policy', [
    named(meshRoutePolicy({ failover: { levels } }), 'default/web') as KubernetesObject,
    named(serviceObject('shop'), 'default/shop') as KubernetesObject,
  ]);
  await served('tailnet');
});
afterAll(async () => {
  await system.end();
  pods.close();
});

/** The condition of a pod in an EndpointSlice. */
type Pod = 'ready' | 'terminating';

/** Writes the EndpointSlices of the Service: a pod for each, which all are the same server. */
function scaleTo(...conditions: readonly Pod[]): void {
  const { port } = pods.address() as AddressInfo;
  const endpoints = conditions.map((is, index) => ({
    addresses: [`127.0.0.${index + 1}`],
    conditions: { ready: is === 'ready', serving: true, terminating: is === 'terminating' },
  }));
  const slice = sliceObject('shop', endpoints, { ports: [{ name: '', port, protocol: 'TCP' }] });
  const labels = { 'kubernetes.io/service-name': 'shop' };
  system.put('pods', [named(slice, 'default/shop-x', { labels }) as KubernetesObject]);
}

type Server = 'pod' | 'tailnet';

async function ask(): Promise<Server> {
  const { status, body } = await requestThrough(system.listeners['http'] ?? '', { host: HOST, path: '/' });
  if (status !== 200) throw new Error(`${status} ${body}`);
  return body === 'pod' ? 'pod' : 'tailnet';
}

/** Waits until requests are answered by pods, or over the tailnet. */
function served(by: Server): Promise<true> {
  return until(`an answer of ${by}`, async note => {
    const found = await ask().catch((error: unknown) => String(error));
    note(found);
    return found === by;
  });
}

beforeEach(async () => {
  scaleTo();
  await served('tailnet');
});

/** Requests by several clients, counted by what answers them. */
function startCounting() {
  const counts = { pod: 0, tailnet: 0 };
  const load = startLoad(4, async () => {
    counts[await ask()]++;
  });
  /** Waits for this many more answers. */
  const more = (by: Server, number: number) => {
    const wanted = counts[by] + number;
    return until(`${number} more answers of ${by}`, note => {
      note(`${counts[by]} of ${wanted}`);
      return Promise.resolve(counts[by] >= wanted);
    });
  };
  return { counts, more, end: () => load.end() };
}

it('a Service without pods fails over to the tailnet and back, without a failed request', async () => {
  scaleTo('ready');
  await served('pod');
  const { more, end } = startCounting();
  for (let round = 0; round < 3; round++) {
    await more('pod', 20);
    scaleTo();
    await more('tailnet', 20);
    scaleTo('ready');
  }
  await more('pod', 20);
  expect((await end()).failures).toEqual([]);
});

it('a rolling update sends nothing to the tailnet', async () => {
  scaleTo('ready');
  await served('pod');
  const { counts, more, end } = startCounting();
  const steps: readonly (readonly Pod[])[] = [
    ['ready', 'ready'],
    ['terminating', 'ready'],
    ['terminating', 'ready', 'ready'],
    ['ready', 'terminating', 'terminating'],
    ['ready'],
  ];
  for (const step of steps) {
    scaleTo(...step);
    await more('pod', 50);
  }
  expect([(await end()).failures, counts.tailnet]).toEqual([[], 0]);
});

it('levels work where a policy divides the rule, which has one backend', async () => {
  system.put('zones', [
    named(
      {
        apiVersion: 'gateway.envoyproxy.io/v1alpha1',
        kind: 'BackendTrafficPolicy',
        spec: {
          targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'web' }],
          loadBalancer: { type: 'RoundRobin', zoneAware: { preferLocal: {} } },
        },
      },
      'default/zones',
    ) as KubernetesObject,
  ]);
  await until('weighted clusters in Envoy', async () =>
    JSON.stringify(await readConfigDump(system.gateway.admin)).includes('weighted_clusters'),
  );
  await served('tailnet');
  scaleTo('ready');
  await served('pod');
  scaleTo();
  expect(await served('tailnet')).toBe(true);
});
