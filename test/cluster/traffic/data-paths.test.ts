import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { tryAll } from '../../../lab/process/errors.ts';
import { until } from '../../../lab/process/wait.ts';
import type { Status } from '../../../src/tools/status/status.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { createMergedClass } from '../../support/cluster/install/merged-class.ts';
import type { TestClass } from '../../support/cluster/install/merged-class.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { endpoint, meshEndpoints, meshGateway } from '../../support/objects.ts';

const cluster = testCluster();

/** The Gateways that are merged, with their ports, and the one that has an Envoy of its own. */
const PORTS = { left: 8081, right: 8082, public: 80 } as const;
type GatewayName = keyof typeof PORTS;

/** The services of remote nodes. */
const [WEB_1, WEB_2] = ['web-1', 'web-2'] as const;
const BOTH = [WEB_1, WEB_2];

let scene: InstallScene;
let merged: TestClass;
beforeAll(async () => {
  scene = await installScene();
  const { client, namespace } = scene;
  merged = await createMergedClass(cluster, client, namespace);
  await scene.use();
  await applyAll(client, [
    gateway('left'),
    gateway('right'),
    dataPath('left', 'Direct'),
    dataPath('right', 'Proxy'),
    endpointsOf(BOTH),
    routeOf('left', ['left']),
    routeOf('right', ['right']),
  ]);
});
afterAll(() => tryAll([() => merged.end(), () => scene.end()]));

function gateway(name: GatewayName): KubeObject {
  const listeners = [{ name: 'http', port: PORTS[name], protocol: 'HTTP' }];
  const spec = { gatewayClassName: merged.name, listeners };
  return gatewayObject('Gateway', `${scene.namespace}/${name}`, spec) as KubeObject;
}

/** The MeshGateway of a Gateway. */
function dataPath(name: GatewayName, mode: 'Proxy' | 'Direct'): KubeObject {
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name }];
  const spec = { targetRefs, dataPath: { mode } };
  return named(meshGateway(spec), `${scene.namespace}/${name}`) as KubeObject;
}

/** The MeshEndpoints of all routes, with the services of these remote nodes. */
function endpointsOf(hostnames: readonly string[]): KubeObject {
  const endpoints = hostnames.map(name => {
    const { address: meshIP, fqdn: meshFQDN, ports } = remoteOf(cluster, name);
    return endpoint({ name, meshIP, meshFQDN, port: ports['http'] });
  });
  return named(meshEndpoints({ endpoints }), `${scene.namespace}/all`) as KubeObject;
}

const hostOf = (name: string) => `${name}.example.com`;

/** A route to both remote nodes, on some of the Gateways. */
function routeOf(name: string, gateways: readonly GatewayName[]): KubeObject {
  const portOf = (hostname: string) => remoteOf(cluster, hostname).ports['http'];
  const backendRefs = BOTH.map(each => meshBackend({ name: 'all', port: portOf(each) }));
  const parentRefs = gateways.map(each => ({ name: each }));
  const spec = { hostnames: [hostOf(name)], parentRefs, rules: [{ backendRefs }] };
  return route('HTTPRoute', `${scene.namespace}/${name}`, spec) as KubeObject;
}

/** Requests to a route by one of its Gateways; each returns the remote node that has answered, and fails on other answers. */
async function asking(name: string, by: GatewayName): Promise<() => Promise<string>> {
  const { client, namespace } = scene;
  const address = await gatewayAddress(client, { namespace, name: by });
  return async () => {
    const { status, body } = await requestThrough(`${address}:${PORTS[by]}`, { host: hostOf(name) });
    if (status !== 200) throw new Error(`${status} ${body}`);
    return (JSON.parse(body) as { readonly backend: string }).backend;
  };
}

const AT_ONCE = 20;

/** Waits until these remote nodes answer, and no others. */
async function untilAnswersOf(
  name: string,
  by: GatewayName,
  expected: readonly string[] = BOTH,
): Promise<void> {
  const ask = await asking(name, by);
  await until(`${expected.join(' and ')} to answer for ${name} through ${by}`, async note => {
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, ask));
    const seen = [...new Set(answers)].sort().join();
    note(seen);
    return seen === [...expected].sort().join();
  });
}

/** Waits until the Envoy of a Gateway has the endpoints of a route with a data path, by `mesh-gateway trace`. */
async function untilPath(name: string, by: GatewayName, mode: 'Proxy' | 'Direct'): Promise<void> {
  await until(`${name} to have the data path ${mode} at ${by}`, async note => {
    const flags = `--from ${scene.namespace}/${by} --kubeconfig "$CLUSTER_KUBECONFIG" --envoy`;
    const printed = await scene.shell.sh(
      `mesh-gateway trace http://${hostOf(name)}:${PORTS[by]}/ ${flags} 2>&1 || echo "exit status $?"`,
    );
    note(printed);
    const found = [...printed.matchAll(ENVOY_ENDPOINT)].map(
      ([, hostname, proxy]) => `${hostname} ${proxy === undefined ? 'Direct' : 'Proxy'}`,
    );
    return (
      !printed.includes('exit status') && found.sort().join() === BOTH.map(each => `${each} ${mode}`).join()
    );
  });
}

/** A line of trace: the name of an endpoint, and its proxy. */
const ENVOY_ENDPOINT = /^ok +envoy +\S+ has endpoint (\S+) at \S+?( through \S+)?: HEALTHY$/gm;

describe('merged Gateways', () => {
  it('each have the data path of their own MeshGateway, on one Envoy, and carry traffic', async () => {
    const { client, namespace, shell } = scene;
    printLogsOnFailure(client, namespace, PLACE.system);
    await Promise.all([untilAnswersOf('left', 'left'), untilAnswersOf('right', 'right')]);
    await untilPath('left', 'left', 'Direct');
    await untilPath('right', 'right', 'Proxy');
    await scene.settled();
    const { envoys } = JSON.parse(
      await shell.sh('mesh-gateway status --envoy --output json --kubeconfig "$CLUSTER_KUBECONFIG"'),
    ) as Required<Pick<Status, 'envoys'>>;
    expect(envoys.filter(({ gateway }) => gateway !== `${namespace}/public`)).toEqual([
      expect.objectContaining({ gateway: merged.name, expected: 2, rejected: 0 }),
    ]);
  });

  it('give a route on both of them the data path of the oldest MeshGateway', async () => {
    printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
    await scene.client.apply(routeOf('shared', ['left', 'right']));
    await Promise.all([untilAnswersOf('shared', 'left'), untilAnswersOf('shared', 'right')]);
    await untilPath('shared', 'left', 'Direct');
    await untilPath('shared', 'right', 'Direct');
    await scene.settled();
    const ask = await asking('shared', 'right');
    expect(BOTH).toContain(await ask());
  });

  it('follow changes of endpoints and of their MeshGateways without a failed request', async () => {
    const { client, namespace } = scene;
    printLogsOnFailure(client, namespace, PLACE.system);
    const [left, right] = await Promise.all([asking('left', 'left'), asking('right', 'right')]);
    const load = startLoad(1, async () => {
      await Promise.all([left(), right()]);
    });
    for (const expected of [[WEB_1], BOTH]) {
      await client.apply(endpointsOf(expected));
      await Promise.all([
        untilAnswersOf('left', 'left', expected),
        untilAnswersOf('right', 'right', expected),
      ]);
    }
    await applyAll(client, [dataPath('left', 'Proxy'), dataPath('right', 'Direct')]);
    await untilPath('left', 'left', 'Proxy');
    await untilPath('right', 'right', 'Direct');
    await client.apply(dataPath('left', 'Direct'));
    await untilPath('left', 'left', 'Direct');
    const { tookMs, failures } = await load.end();
    expect(failures).toEqual([]);
    expect(tookMs.length).toBeGreaterThan(10);
  });
});

it('a route on two Gateways has the data path of each, and both carry traffic at the same time', async () => {
  const { client, namespace } = scene;
  printLogsOnFailure(client, namespace, PLACE.system);
  await applyAll(client, [dataPath('public', 'Proxy'), routeOf('both', ['public', 'left'])]);
  await Promise.all([untilAnswersOf('both', 'public'), untilAnswersOf('both', 'left')]);
  await untilPath('both', 'public', 'Proxy');
  await untilPath('both', 'left', 'Direct');
  const [proxied, direct] = await Promise.all([asking('both', 'public'), asking('both', 'left')]);
  const load = startLoad(2, async () => {
    await Promise.all([proxied(), direct()]);
  });
  await until('enough requests', () => load.attempts() > 20);
  expect((await load.end()).failures).toEqual([]);
});
