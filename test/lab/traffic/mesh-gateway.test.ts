import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfigDump, requestThrough } from '../../../lab/gateway/envoy.ts';
import { GATEWAY_NAME } from '../../../lab/gateway/objects.ts';
import type { KubernetesObject } from '../../../lab/gateway/objects.ts';
import { until } from '../../../lab/process/wait.ts';
import { named } from '../../support/declared.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { meshEndpoint, meshEndpoints, meshRoute, meshTailnet } from '../../support/lab/traffic/objects.ts';
import { startSystem } from '../../support/lab/traffic/system.ts';
import type { System } from '../../support/lab/traffic/system.ts';
import { meshGateway } from '../../support/objects.ts';

const HOST = 'web.test';

let system: System;
beforeAll(async () => {
  system = await startSystem();
  const web = remoteOf(system.lab, 'web-1');
  const healthCheck = { enabled: true, path: '/', interval: '1s' };
  const port = web.ports['http'] ?? 0;
  system.put('web', [
    meshTailnet(system.lab, [system.lab.proxy]),
    meshEndpoints(system.lab, 'web', [{ ...meshEndpoint(web, 'http'), healthCheck }]),
    meshRoute(system.gateway, {
      name: 'web',
      kind: 'HTTPRoute',
      listener: 'http',
      hostnames: [HOST],
      refs: [{ name: 'web', port }],
    }),
  ]);
  await answers(200);
});
afterAll(async () => {
  await system.end();
});

const ask = () => requestThrough(system.listeners['http'] ?? '', { host: HOST, path: '/hello' });

/** Waits until the Gateway answers with a status code. */
function answers(code: number): Promise<number> {
  return until(`${code} through the Gateway`, async note => {
    const { status, body } = await ask();
    note(`${status} ${body}`);
    return status === code ? status : undefined;
  });
}

/** Writes a MeshGateway of the lab's Gateway into the folder of resources. */
function put(name: string, spec: Readonly<Record<string, unknown>>): void {
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: GATEWAY_NAME.name }];
  system.put(name, [
    named(meshGateway({ targetRefs, ...spec }), `${GATEWAY_NAME.namespace}/${name}`) as KubernetesObject,
  ]);
}

type Dumped = { readonly cluster: { readonly name: string; readonly health_checks?: readonly unknown[] } };

/** Whether Envoy has health checks in the cluster of the route. */
async function hasChecks(): Promise<boolean> {
  const dump = await readConfigDump(system.gateway.admin);
  const clusters = dump.flatMap(part => (part['dynamic_active_clusters'] ?? []) as readonly Dumped[]);
  const ours = clusters.find(({ cluster }) => cluster.name === 'httproute/default/web/rule/0');
  if (!ours) throw new Error('Envoy has no cluster of the route');
  return (ours.cluster.health_checks ?? []).length > 0;
}

/** Whether Envoy goes through a proxy to the endpoint of the route. */
async function hasProxy(): Promise<boolean> {
  const dump = await (await fetch(`${system.gateway.admin}/config_dump?include_eds`)).text();
  return dump.includes('http11_proxy_transport_socket.proxy_address');
}

it("a MeshGateway turns Envoy's health checks off and on without a failed request", async () => {
  expect(await hasChecks()).toBe(true);
  put('edge', { healthChecks: { envoy: 'Off' } });
  await until('Envoy to check nothing', async () => ((await hasChecks()) ? undefined : true));
  // The operator has decided.
  await answers(200);
  let answered = 0;
  const load = startLoad(2, async () => {
    const { status, body } = await ask();
    if (status !== 200) throw new Error(`${status} ${body}`);
    answered++;
  });
  put('edge', { healthChecks: { envoy: 'On' } });
  await until('Envoy to check again', async () => await hasChecks());
  put('edge', { healthChecks: { envoy: 'Off' } });
  await until('Envoy to check nothing', async () => ((await hasChecks()) ? undefined : true));
  await until('enough requests', () => answered > 10);
  const { failures } = await load.end();
  expect(failures).toEqual([]);
});

it('a MeshGateway sets the data path, unless an older one decides', async () => {
  put('edge', { dataPath: { mode: 'Direct' } });
  await until('Envoy to connect directly', async () => ((await hasProxy()) ? undefined : true));
  put('later', { dataPath: { mode: 'Proxy' } });
  put('edge', { dataPath: { mode: 'Direct' }, healthChecks: { envoy: 'On' } });
  await until('Envoy to check', async () => await hasChecks());
  expect(await hasProxy()).toBe(false);
  system.remove('edge');
  await until('Envoy to use the proxy', async () => await hasProxy());
});
