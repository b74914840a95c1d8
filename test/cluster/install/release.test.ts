import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kubeClient } from '../../../lab/kube/client.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { refOf } from '../../../lab/kube/object.ts';
import { waitForAbsence } from '../../../lab/kube/wait.ts';
import { tryAll } from '../../../lab/process/errors.ts';
import { until } from '../../../lab/process/wait.ts';
import { COMPONENTS } from '../../../src/api/names.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import { printLogsOnFailure } from '../../support/cluster/logs.ts';
import { putOlderChart } from '../../support/cluster/install/older.ts';
import { waitForReplicas } from '../../support/cluster/install/replicas.ts';
import { failuresUnderLoad } from '../../support/cluster/install/scene-load.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { IMAGE, installationShell, isInstalled } from '../../support/cluster/install/shared.ts';
import type { Shell } from '../../support/cluster/install/shared.ts';
import { doctorOn } from '../../support/cluster/run-doctor.ts';
import { IS_LONG } from '../../support/eventually.ts';
import { CHART, helm } from '../../support/synth/chart.ts';

const { operator, extensionServer } = COMPONENTS;
const { kubeconfig, access } = testCluster();
const client = kubeClient(access);

/** Runs a command of helm on the release. */
const release = (command: string, ...args: readonly string[]) =>
  helm([command, 'mesh-gateway', ...args, '--namespace', PLACE.system, '--kubeconfig', kubeconfig]);

/** The image of this build, also for a chart of another version. */
const [repository = '', tag = ''] = IMAGE.documented.split(/:(?=[^:]*$)/);
const IMAGE_VALUES = ['--set', `image.repository=${repository},image.tag=${tag}`];

async function replaced(): Promise<void> {
  for (const name of [operator, extensionServer]) await waitForReplicas(client, name, 2);
}

let shell: Shell;
let scene: InstallScene;
beforeAll(async () => {
  expect(isInstalled(), 'the installation of other files is not tested here').toBe(false);
  shell = await installationShell();
});
afterAll(async () => {
  await tryAll([
    async () => {
      await shell.sh('helm restore');
      await shell.sh('kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway');
      await shell.sh(
        'kubectl -n envoy-gateway-system rollout status deployment/envoy-gateway --timeout=300s',
      );
    },
    () => release('uninstall', '--ignore-not-found'),
    () => shell.sh('kubectl delete --ignore-not-found -f manifests/crds.yaml -f manifests/namespace.yaml'),
  ]);
});

it('all that is applied at once, Envoy Gateway first, ends with traffic, or doctor names the restart that it takes', async () => {
  printLogsOnFailure(client, PLACE.system, 'envoy-gateway-system');
  await shell.sh(
    'helm upgrade --install eg "$ENVOY_GATEWAY_CHART" --values manifests/envoy-gateway/values.yaml',
  );
  await shell.sh('kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway');
  await shell.sh('kubectl -n envoy-gateway-system rollout status deployment/envoy-gateway --timeout=300s');
  const chart = join(shell.folder, 'older-chart');
  rmSync(chart, { recursive: true, force: true });
  const { from } = putOlderChart(chart);
  console.log(`installed: ${from}`);
  await release('install', chart, '--create-namespace', ...IMAGE_VALUES);
  scene = await installScene({ installed: shell });
  await scene.use();
  await replaced();
  const restart = 'kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway';
  const outcome = await until('traffic, or the restart that it takes', async () => {
    if ((await scene.request().catch(() => undefined))?.status === 200) return 'traffic';
    const { lines } = await doctorOn({ kubeconfig });
    return lines.some(({ fix = '' }) => fix.includes(restart)) ? 'restart' : undefined;
  });
  console.log(`ended with: ${outcome}`);
  if (outcome === 'restart') await shell.sh(restart);
  await scene.answerOf('web-1');
  expect((await scene.request()).status).toBe(200);
});

it('a release is upgraded from the last chart of another form under load, and no request fails', async () => {
  const failures = await failuresUnderLoad(scene, 'upgrade', async () => {
    await release('upgrade', CHART, ...IMAGE_VALUES);
    await replaced();
    if (!IS_LONG) return;
    await release('rollback');
    await replaced();
    await release('upgrade', CHART, ...IMAGE_VALUES);
    await replaced();
  });
  expect(failures).toEqual([]);
});

it('a release that is removed leaves its CRDs alone', async () => {
  await scene.remove();
  await release('uninstall');
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: PLACE.system, name: operator };
  await waitForAbsence(client, deployment);
  const manifests = readManifests(join(shell.folder, 'manifests')).filter(
    ({ kind }) => kind !== 'Kustomization' && kind !== 'Namespace',
  );
  const found = await Promise.all(
    manifests.map(async object =>
      (await client.get(refOf(object)).catch(() => undefined)) ? [object.kind] : [],
    ),
  );
  expect(new Set(found.flat())).toEqual(new Set(['CustomResourceDefinition']));
});
