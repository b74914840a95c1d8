import { afterAll, beforeAll, expect, it } from 'vitest';
import { gatewayAddress, withEnvoyAdmin } from '../../../lab/cluster/gateway.ts';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForAbsence, waitForCondition, waitForObject } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import type { Status } from '../../../src/tools/status/status.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { remoteEndpoints } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';
import { meshGateway } from '../../support/objects.ts';

const cluster = testCluster();
let scene: InstallScene;
beforeAll(async () => {
  scene = await installScene();
  await scene.use();
  await scene.settled();
});
afterAll(async () => {
  await scene.end();
});

const refOfEdge = () => ({
  apiVersion: API_VERSION,
  kind: 'MeshGateway',
  namespace: scene.namespace,
  name: 'edge',
});

/** Applies a MeshGateway, and waits until its status has all of this for its generation. */
async function applied(
  spec: Readonly<Record<string, unknown>>,
  wanted: Readonly<Record<string, string>>,
): Promise<NonNullable<Kinds['MeshGateway']['status']>> {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' }];
  const object = named(meshGateway({ targetRefs, ...spec }), `${scene.namespace}/edge`) as KubeObject;
  const { metadata } = await scene.client.apply(object);
  const texts = (found: KubeObject) =>
    Object.fromEntries(
      (statusOf(found).conditions ?? [])
        .filter(({ observedGeneration }) => observedGeneration === metadata.generation)
        .map(({ type, status, reason }) => [type, `${status}/${reason}`]),
    );
  const isReached = (found: KubeObject) =>
    Object.entries(wanted).every(([type, text]) => texts(found)[type] === text);
  const what = `to have ${JSON.stringify(wanted)}`;
  return statusOf(await waitForObject(scene.client, refOfEdge(), what, isReached));
}

function statusOf(object: KubeObject) {
  return (object as unknown as Kinds['MeshGateway']).status ?? {};
}

const PROGRAMMED = {
  Accepted: 'True/Accepted',
  Programmed: 'True/Programmed',
  EndpointsReady: 'True/EndpointsReady',
};

/** Whether Envoy goes through a proxy to the endpoint of the route. */
function hasProxy(): Promise<boolean> {
  const gateway = { namespace: scene.namespace, name: 'public' };
  return withEnvoyAdmin(cluster, scene.client, gateway, async admin => {
    const dump = await (await fetch(`${admin}/config_dump?include_eds`)).text();
    return dump.includes('http11_proxy_transport_socket.proxy_address');
  });
}

/** Runs a command with --envoy until it finds the cluster, and no difference; returns what it prints. */
function withEnvoy(command: string, cluster: string): Promise<string> {
  return until(`mesh-gateway ${command} to find no difference`, async note => {
    const flags = '--kubeconfig "$CLUSTER_KUBECONFIG" --envoy';
    const printed = await scene.shell.sh(`mesh-gateway ${command} ${flags} 2>&1 || echo "exit status $?"`);
    note(printed);
    return printed.includes('exit status') || !printed.includes(cluster) ? undefined : printed;
  });
}

it('trace and status show what the Envoy of a Gateway has, by a port-forward', async () => {
  printLogsOnFailure(scene.client, scene.namespace, PLACE.system);
  const gateway = `${scene.namespace}/public`;
  const name = `httproute/${scene.namespace}/web/rule/0`;
  const traced = await withEnvoy(`trace http://${PLACE.host}/ --from ${gateway}`, name);
  expect(traced).toMatch(
    new RegExp(`^ok +envoy +\\S+ has cluster ${name} of version \\S+: 1 of 1 endpoints in use$`, 'm'),
  );
  expect(traced).toMatch(/^ok +envoy +\S+ has endpoint web at \S+ through \S+: HEALTHY$/m);
  const { envoys, differences } = JSON.parse(await withEnvoy('status --output json', name)) as Status;
  expect({ envoys, differences }).toMatchObject({
    envoys: [{ gateway, expected: 1, clusters: [{ name, endpoints: { used: 1, total: 1 } }] }],
    differences: [],
  });
});

it('a MeshGateway is programmed once Envoy Gateway has reported the translation with its settings', async () => {
  expect(await hasProxy()).toBe(true);
  const status = await applied({ dataPath: { mode: 'Direct' } }, PROGRAMMED);
  expect(status).toMatchObject({
    gateways: [{ name: 'public', reason: 'Accepted' }],
    routes: { total: 1, mesh: 1 },
    endpoints: { total: 1, healthy: 1 },
    lastTranslation: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as unknown,
  });
  // Envoy gets endpoints from us, and clusters from Envoy Gateway.
  await until('Envoy to connect directly', async () => ((await hasProxy()) ? undefined : true));
  expect(await scene.shell.sh(`kubectl -n ${scene.namespace} get mgw edge`)).toMatch(/^edge .*True/m);
});

it('a change of it is programmed again, and without it the Gateway has the defaults', async () => {
  await applied({ dataPath: { mode: 'Proxy' }, healthChecks: { envoy: 'Off' } }, PROGRAMMED);
  await scene.answerOf('web-1');
  await applied({ dataPath: { mode: 'Direct' } }, PROGRAMMED);
  await until('Envoy to connect directly', async () => ((await hasProxy()) ? undefined : true));
  await scene.client.remove(refOfEdge());
  await waitForAbsence(scene.client, refOfEdge());
  await until('Envoy to use the proxy', async () => await hasProxy());
  // The threads of Envoy get endpoints a moment after its configuration shows them.
  await scene.answerOf('web-1');
  const { status, body } = await scene.request();
  expect({ status, body }).toEqual({
    status: 200,
    body: expect.stringContaining('"backend":"web-1"') as unknown,
  });
});

it('a MeshGateway of a Gateway that does not exist is not accepted', async () => {
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'missing' }];
  const wanted = { Accepted: 'False/TargetNotFound', Programmed: 'Unknown/NoMeshRoutes' };
  const { gateways } = await applied({ targetRefs }, wanted);
  expect(gateways).toEqual([{ name: 'missing', reason: 'TargetNotFound' }]);
});

const HOST = 'listed.example.com';
const LISTENER = { name: 'more', port: 8081, protocol: 'HTTP' };

/** A Gateway whose only route attaches to its ListenerSet. */
function attachedByListenerSet(namespace: string): readonly KubeObject[] {
  const port = remoteOf(cluster, 'web-1').ports['http'];
  const gateway = {
    gatewayClassName: 'mesh',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
    allowedListeners: { namespaces: { from: 'Same' } },
  };
  const parentRefs = [{ group: 'gateway.networking.k8s.io', kind: 'ListenerSet', name: 'more' }];
  const rules = [{ backendRefs: [meshBackend({ name: 'listed', port })] }];
  return [
    gatewayObject('Gateway', `${namespace}/shared`, gateway) as KubeObject,
    gatewayObject('ListenerSet', `${namespace}/more`, {
      parentRef: { name: 'shared' },
      listeners: [LISTENER],
    }) as KubeObject,
    remoteEndpoints(cluster, 'web-1', `${namespace}/listed`),
    route('HTTPRoute', `${namespace}/listed`, { hostnames: [HOST], parentRefs, rules }) as KubeObject,
  ];
}

it('a route that attaches to a ListenerSet gets traffic, the MeshBinding of the Gateway, and status', async () => {
  const { client, namespace, shell } = scene;
  printLogsOnFailure(client, namespace);
  await applyAll(client, attachedByListenerSet(namespace));
  const address = await gatewayAddress(client, { namespace, name: 'shared' });
  await until('web-1 to answer through the ListenerSet', async note => {
    const { status, body } = await requestThrough(`${address}:${LISTENER.port}`, { host: HOST });
    note(`${status} ${body}`);
    return status === 200 && body.includes('"backend":"web-1"');
  });
  const endpoints = { apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace, name: 'listed' };
  await waitForCondition(client, endpoints, 'Programmed');
  const hasRoute = ({ status }: KubeObject) =>
    (status as Kinds['MeshEndpoints']['status'])?.routes?.[0]?.resolved === true;
  const { status } = await waitForObject(client, endpoints, 'to have its route', hasRoute);
  expect((status as Kinds['MeshEndpoints']['status'])?.routes).toEqual([
    { kind: 'HTTPRoute', namespace, name: 'listed', resolved: true },
  ]);
  const ref = { apiVersion: API_VERSION, kind: 'MeshBinding', namespace, name: 'shared' };
  const binding = await waitForObject(client, ref, 'to exist', () => true);
  expect(binding).toMatchObject({ spec: { targetRefs: [{ name: 'shared' }] } });
  expect(await shell.sh('mesh-gateway trace --all --kubeconfig "$CLUSTER_KUBECONFIG" || true')).toContain(
    `HTTPRoute ${namespace}/listed for ${HOST} at Gateway ${namespace}/shared\n`,
  );
});
