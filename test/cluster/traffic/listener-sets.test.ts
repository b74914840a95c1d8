import { afterAll, beforeAll, expect, it } from 'vitest';
import { gatewayAddress } from '../../../lab/cluster/gateway.ts';
import { requestThrough } from '../../../lab/gateway/envoy.ts';
import { applyAll } from '../../../lab/kube/apply.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { waitForCondition } from '../../../lab/kube/wait.ts';
import { waitFor } from '../../../lab/process/wait.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { remoteEndpoints } from '../../support/cluster/install/mesh.ts';
import { installScene } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { gatewayObject, meshBackend, route } from '../../support/declared.ts';
import { remoteOf } from '../../support/lab/lab.ts';

const cluster = testCluster();
let scene: InstallScene;
beforeAll(async () => {
  scene = await installScene();
  await scene.install(() => undefined);
  await scene.use();
  await applyAll(scene.client, attachedByListenerSet(scene.namespace));
});
afterAll(async () => {
  await scene.end();
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
  const address = await gatewayAddress(client, { namespace, name: 'shared' });
  await waitFor('web-1 to answer through the ListenerSet', async note => {
    const { status, body } = await requestThrough(`${address}:${LISTENER.port}`, { host: HOST });
    note(`${status} ${body}`);
    return status === 200 && body.includes('"backend":"web-1"') ? true : undefined;
  });
  const endpoints = { apiVersion: API_VERSION, kind: 'MeshEndpoints', namespace, name: 'listed' };
  const { status } = await waitForCondition(client, endpoints, 'Programmed');
  expect((status as Kinds['MeshEndpoints']['status'])?.routes).toEqual([
    { kind: 'HTTPRoute', namespace, name: 'listed', resolved: true },
  ]);
  const binding = { apiVersion: API_VERSION, kind: 'MeshBinding', namespace, name: 'shared' };
  expect(await client.get(binding)).toMatchObject({ spec: { targetRefs: [{ name: 'shared' }] } });
  const kinds = 'httproutes,gateways,listenersets,namespaces,meshendpoints,meshtailnets';
  await shell.sh(`mkdir objects\nkubectl get ${kinds} -A -o yaml > objects/all.yaml`);
  expect(await shell.sh('mesh-gateway explain objects')).toContain(
    `HTTPRoute ${namespace}/listed for ${HOST} at Gateway ${namespace}/shared\n`,
  );
});
