import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { CLUSTER_FOLDER, ClusterFolder } from '../../../lab/cluster/cluster-folder.ts';
import { ENVOY_GATEWAY } from '../../../lab/cluster/envoy-gateway.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { conditionsOf } from '../../../lab/kube/state.ts';
import { processesWith } from '../../../lab/process/process-table.ts';
import { until } from '../../../lab/process/wait.ts';
import { ENVOY_POD, MESH_POD, poolName, relayName } from '../../../src/api/names.ts';
import { formatAddress } from '../../../src/telemetry/address.ts';
import { askProxyFrom, processOf } from '../../support/cluster/ask-proxy.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startLoad } from '../../support/cluster/install/load.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { scaleOperator } from '../../support/cluster/install/older-mesh-pods.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { gatewayObject, named } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';

const cluster = testCluster();

let scene: InstallScene;
beforeAll(async () => {
  const tailnet = await startManagedTailnet(cluster);
  scene = await installScene({ tailnet });
  await scene.use();
  await scene.answerOf('web-1');
});
afterAll(() => scene.end());

/** The Envoys of the scene that are not being deleted: one that is drains for minutes. */
async function envoys(): Promise<readonly KubeObject[]> {
  const all = await podsWith(scene.client, ENVOY_GATEWAY.namespace, {
    ...ENVOY_POD.labels,
    'gateway.envoyproxy.io/owning-gateway-namespace': scene.namespace,
  });
  return all.filter(({ metadata }) => !('deletionTimestamp' in metadata));
}

function envoysReady(count: number, revision: string): Promise<true> {
  return until(`${count} Envoys to be ready`, async note => {
    const pods = await envoys();
    const ready = pods.filter(
      pod =>
        pod.metadata.annotations?.['revision'] === revision &&
        conditionsOf(pod).some(({ type, status }) => type === 'Ready' && status === 'True'),
    );
    note(`${ready.length} of ${pods.length} are`);
    return pods.length === count && ready.length === count;
  });
}

/** Requests through the Gateway, each on a connection of its own. */
function startRequests() {
  const load = startLoad(4, async () => {
    const { status, body } = await scene.request();
    if (status !== 200) throw new Error(`${status} ${body}`);
  });
  const more = async (count: number) => {
    const wanted = load.attempts() + count;
    await until(`${count} more requests`, () => load.attempts() >= wanted);
  };
  return { ...load, more };
}

/** Ten Envoys fit on the only node. */
const RESOURCES = { requests: { cpu: '10m', memory: '32Mi' } };

/** Adds an endpoint and removes it again, which leads to the same service by another device, until the signal. */
async function changeEndpoints(more: (count: number) => Promise<void>, { signal }: AbortController) {
  const [first, second] = ['web-1', 'web-2'].map(name => remoteOf(cluster, name).address);
  const { http: port } = remoteOf(cluster, 'web-1').ports;
  const all = [first, second].map((meshIP, at) => endpoint({ name: `e${at}`, meshIP, port }));
  for (let count = 2; !signal.aborted; count = 3 - count) {
    const object = meshEndpoints({ endpoints: all.slice(0, count) });
    await scene.client.apply(named(object, `${scene.namespace}/web`) as KubeObject);
    await more(50);
  }
}

it('Envoys that are added under load, ten of them, replaced and removed again while endpoints change lose no request', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const { client, namespace } = scene;
  const proxyOf = (replicas: number, revision: string): KubeObject => ({
    ...{ apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'EnvoyProxy' },
    metadata: { namespace, name: 'many' },
    spec: {
      // The class has the images.
      mergeType: 'StrategicMerge',
      // Those of the lab end at once.
      shutdown: { drainTimeout: '15s', minDrainDuration: '5s' },
      provider: {
        type: 'Kubernetes',
        kubernetes: {
          envoyDeployment: {
            replicas,
            container: { resources: RESOURCES },
            pod: { annotations: { revision } },
          },
        },
      },
    },
  });
  const parametersRef = { group: 'gateway.envoyproxy.io', kind: 'EnvoyProxy', name: 'many' };
  await applyAll(client, [
    proxyOf(1, 'a'),
    gatewayObject('Gateway', `${namespace}/public`, {
      ...{ gatewayClassName: 'mesh', infrastructure: { parametersRef } },
      listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
    }) as KubeObject,
  ]);
  await envoysReady(1, 'a');
  await scene.answerOf('web-1');
  const load = startRequests();
  const changes = new AbortController();
  const changing = changeEndpoints(load.more, changes);
  for (const [count, revision] of [
    [10, 'a'],
    [10, 'b'],
    [1, 'b'],
  ] as const) {
    await client.apply(proxyOf(count, revision));
    await envoysReady(count, revision);
    await load.more(400);
  }
  changes.abort();
  await changing;
  const { tookMs, failures } = await load.end();
  console.log(`${tookMs.length} went well, ${failures.length} failed`);
  expect(failures).toEqual([]);
});

const AWAY_MS = 300_000;

/** The relay of the first mesh pod. */
async function relay(): Promise<{ readonly pid: number; readonly podIP: string }> {
  const name = `${poolName(scene.namespace)}-0`;
  const { status } = await scene.client.get({
    apiVersion: 'v1',
    kind: 'Pod',
    namespace: PLACE.system,
    name,
  });
  const { podIP = '' } = status as { readonly podIP?: string };
  return { pid: relayAt(podIP), podIP };
}

function relayAt(podIP: string): number {
  const ofTailnet = processesWith('RELAY_CONFIG_MAP', relayName(scene.namespace));
  const pid = ofTailnet.find(each => processesWith('POD_IPS', podIP).includes(each));
  if (pid === undefined) throw new Error(`no relay runs in the mesh pod at ${podIP}`);
  return pid;
}

it('Envoys go on while operator and API server are away, also through a relay that starts meanwhile', async () => {
  const { client } = scene;
  const apiServer = new ClusterFolder(CLUSTER_FOLDER)
    .processes()
    .find(({ name }) => name === 'kube-apiserver');
  if (!apiServer) throw new Error('no API server runs');
  const { pid, podIP } = await relay();
  const [envoy] = await envoys();
  const envoyProcess = processOf('ENVOY_POD_NAME', envoy?.metadata.name ?? '');
  await scaleOperator(client, PLACE.system, 0);
  const goOn = () => process.kill(apiServer.pid, 'SIGCONT');
  onTestFinished(async () => {
    goOn();
    await scaleOperator(client, PLACE.system, 2);
    await scene.settled();
  });
  process.kill(apiServer.pid, 'SIGSTOP');
  const endsAt = performance.now() + AWAY_MS;
  process.kill(pid, 'SIGKILL');
  const proxy = formatAddress({ host: podIP, port: MESH_POD.ports.proxy });
  const web = remoteOf(cluster, 'web-1');
  const declared = `${web.address}:${web.ports['http']}`;
  const undeclared = `${web.address}:22`;
  // The new one has no lists but those that it kept.
  await until('the new relay to serve', async note => {
    const answers = await askProxyFrom(envoyProcess, proxy, [declared]);
    note(JSON.stringify(answers));
    return answers[declared] === '200';
  });
  expect(relayAt(podIP)).not.toBe(pid);
  const load = startRequests();
  while (performance.now() < endsAt) await load.more(1_000);
  const { tookMs, failures } = await load.end();
  console.log(`${tookMs.length} went well, ${failures.length} failed`);
  expect(failures).toEqual([]);
  expect(await askProxyFrom(envoyProcess, proxy, [undeclared])).toEqual({ [undeclared]: '403' });
});
