import { afterAll, beforeAll, expect, it } from 'vitest';
import { waitForCondition } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { listNodes } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetNode } from '../../../lab/tailnet/tailnet.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { COMPONENTS, poolName } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { startManagedTailnet } from '../../support/cluster/install/mesh.ts';
import type { ManagedTailnet } from '../../support/cluster/install/mesh.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';

const cluster = testCluster();
const OWN = PLACE.system;

let tailnet: ManagedTailnet;
let scene: InstallScene;
beforeAll(async () => {
  tailnet = await startManagedTailnet(cluster, { dialect: 'headscale' });
  scene = await installScene({ tailnet });
  await scene.use();
  await poolIsReady();
});
afterAll(async () => {
  await scene.shell.sh(`kubectl -n ${OWN} set env deployment/${COMPONENTS.operator} ORPHAN_AGE-`);
  await scene.shell.sh('kubectl apply --server-side --force-conflicts -k manifests');
  await scene.end();
});

function poolIsReady(): Promise<unknown> {
  const ref = { apiVersion: API_VERSION, kind: 'MeshTailnet', name: scene.namespace };
  return waitForCondition(scene.client, ref, 'PoolReady');
}

/** The devices of mesh pods. */
async function devices(): Promise<readonly TailnetNode[]> {
  const nodes = await listNodes(cluster.tailnet.admin);
  return nodes.filter(({ hostname }) => hostname.startsWith(`${poolName(scene.namespace)}-`));
}

it('an installation whose namespace was deleted is installed again, and removes the devices of before', async () => {
  const { client, shell } = scene;
  printLogsOnFailure(client, scene.namespace, OWN);
  await scene.answerOf('web-1');
  const before = await devices();
  expect(before).toHaveLength(2);
  await shell.sh(`kubectl delete namespace ${OWN} --timeout=300s`);
  expect((await devices()).map(({ id }) => id).toSorted()).toEqual(before.map(({ id }) => id).toSorted());
  await shell.sh('kubectl apply --server-side -k manifests');
  await shell.sh(`kubectl -n ${OWN} set env deployment/${COMPONENTS.operator} ORPHAN_AGE=1s`);
  await client.apply(tailnet.secret);
  const isSwept = async () => {
    const after = await devices();
    const isNew = after.every(({ id, online }) => online && before.every(old => old.id !== id));
    return after.length === 2 && isNew;
  };
  await until('only new devices', isSwept, { timeoutMs: 300_000 });
  await poolIsReady();
  await scene.answerOf('web-1');
});
