import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NETWORK } from '../../../lab/cluster/network.ts';
import { tailnetBehind } from '../../../lab/control-api/real-tailnet.ts';
import { parseManifests } from '../../../lab/kube/manifests.ts';
import { waitForCondition } from '../../../lab/kube/wait.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { listNodes, removeNode } from '../../../lab/tailnet/tailnet.ts';
import { poolName } from '../../../src/api/names.ts';
import { yamlOf } from '../../../src/api/yaml-documents.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { installScene } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { startClient } from '../../support/control/client.ts';
import { named } from '../../support/declared.ts';
import { meshTailnet } from '../../support/objects.ts';

const cluster = testCluster();
const { admin, url } = cluster.tailnet;

/** The MeshTailnet of a scene that it is read from. */
const written = (name: string) =>
  named(meshTailnet({ loginServer: url, pool: { replicas: 2 } }), name) as KubeObject;

/** Removes the devices of the pods, which no operator does. */
async function removeDevices(pool: string): Promise<void> {
  const nodes = await listNodes(admin);
  const own = nodes.filter(({ hostname }) => hostname.startsWith(`${pool}-`));
  await Promise.all(own.map(({ id }) => removeNode(admin, id)));
}

async function joinKey(description: string): Promise<string> {
  const vendor = await startClient({ api: { host: NETWORK.outer, behind: tailnetBehind(admin) } });
  await vendor.tokens.use(vendor.credentials);
  const options = { tags: ['tag:mesh'], expirySeconds: 3600, ephemeral: false, preauthorized: true };
  const { secret } = await vendor.control.createKey({ description, ...options });
  await vendor.close();
  return secret;
}

let scene: InstallScene;
/** The MeshTailnet that is printed. */
let declared: KubeObject | undefined;
beforeAll(async () => {
  let pool = '';
  scene = await installScene({
    tailnet: { tailnetNamed: name => declared ?? written(name), end: () => removeDevices(pool) },
  });
  const { namespace, shell } = scene;
  pool = poolName(namespace);
  for (const ordinal of [0, 1]) {
    const secret = `kubectl -n ${namespace} create secret generic ${pool}-${ordinal}`;
    await shell.sh(`${secret} --from-literal=authkey=${await joinKey(`${pool} ${ordinal}`)}`);
  }
  writeFileSync(join(shell.folder, 'tailnet.yaml'), yamlOf(written(namespace)));
  const synth = `mesh-gateway synth pool --config mesh-gateway.yaml --tailnet tailnet.yaml --namespace ${namespace}`;
  await shell.sh(`${synth} | kubectl apply --server-side -f -`);
  const address = await shell.sh(
    `kubectl -n ${namespace} get service ${pool} --output=jsonpath={.spec.clusterIP}`,
  );
  const printed = await shell.sh(`${synth} --address ${address}`);
  writeFileSync(join(shell.folder, 'pool.yaml'), printed);
  declared = parseManifests(printed, 'synth pool').find(({ kind }) => kind === 'MeshTailnet');
  await shell.sh('kubectl apply --server-side -f pool.yaml');
  await scene.use();
});
afterAll(async () => {
  await scene.end();
});

it('mesh pods that a user runs carry traffic, and the operator takes none of them for its own', async () => {
  const { namespace } = scene;
  const pod = (ordinal: number) => ({ namespace, name: `${poolName(namespace)}-${ordinal}` });
  const client = kubeClient(cluster.access);
  for (const ordinal of [0, 1])
    await waitForCondition(client, { apiVersion: 'v1', kind: 'Pod', ...pod(ordinal) }, 'Ready');
  await scene.answerOf('web-1');
  const tailnet = { apiVersion: 'mesh-gateway.dev/v1alpha1', kind: 'MeshTailnet', name: namespace };
  await waitForCondition(client, tailnet, 'Ready');
  expect(await scene.shell.sh('kubectl diff --server-side -f pool.yaml')).toBe('');
});
