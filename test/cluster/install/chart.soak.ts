import { afterAll, beforeAll, expect, it } from 'vitest';
import { COMPONENTS } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { waitForReplicas } from '../../support/cluster/install/replicas.ts';
import { failuresUnderLoad } from '../../support/cluster/install/scene-load.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { IMAGE } from '../../support/cluster/install/shared.ts';
import { CHART, helm } from '../../support/synth/chart.ts';
import { at } from '../../support/synth/parts.ts';

const { operator, extensionServer } = COMPONENTS;

let scene: InstallScene;
beforeAll(async () => {
  scene = await installScene();
  await scene.use();
  await scene.answerOf('web-1');
});
afterAll(async () => {
  await scene.end();
});

/** The container of the extension server, as its Deployment has it. */
async function extensionServerContainer(): Promise<string> {
  const name = { namespace: PLACE.system, name: extensionServer };
  const { spec } = await scene.client.get({ apiVersion: 'apps/v1', kind: 'Deployment', ...name });
  return JSON.stringify(at(spec, 'template', 'spec', 'containers', 0));
}

it('a release takes over the manifests and gives them back under load, and no request fails', async () => {
  const { kubeconfig } = testCluster();
  const settled = async () => {
    for (const name of [operator, extensionServer]) await waitForReplicas(scene.client, name, 2);
  };
  const failures = await failuresUnderLoad(scene, 'to the chart and back', async () => {
    const flags = ['--namespace', PLACE.system, '--kubeconfig', kubeconfig, '--values', '-'];
    const owned = ['--take-ownership', '--force-conflicts'];
    await helm(['upgrade', '--install', 'mesh-gateway', CHART, ...owned, ...flags], {
      image: { repository: IMAGE.documented.replace(/:[^:]*$/, '') },
      extensionServer: { logLevel: 'debug' },
    });
    await settled();
    expect(await extensionServerContainer()).toContain('"debug"');
    await scene.shell.sh('kubectl apply --server-side --force-conflicts -k manifests');
    await scene.shell.sh(`kubectl -n ${PLACE.system} delete secrets --selector owner=helm`);
    await settled();
    expect(await extensionServerContainer()).not.toContain('"debug"');
  });
  expect(failures).toEqual([]);
});
