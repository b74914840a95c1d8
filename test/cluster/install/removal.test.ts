import { join } from 'node:path';
import { expect, it } from 'vitest';
import { documentedCommands } from '../../../lab/install/installer.ts';
import { kubeClient } from '../../../lab/kube/client.ts';
import { KubeError } from '../../../lab/kube/error.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { nameRef, refOf } from '../../../lab/kube/object.ts';
import { listNodes } from '../../../lab/tailnet/tailnet.ts';
import { testCluster } from '../../support/cluster/cluster.ts';
import {
  forgetInstallation,
  removeImages,
  sharedInstallation,
} from '../../support/cluster/install/shared.ts';

const cluster = testCluster();
const client = kubeClient(cluster.access);

/** The objects of the manifests in a folder that exist. */
async function present(folder: string): Promise<readonly string[]> {
  const refs = readManifests(folder)
    .filter(({ kind }) => kind !== 'Kustomization')
    .map(refOf);
  const found = refs.map(async ref => {
    try {
      await client.get(ref);
      return [nameRef(ref)];
    } catch (error) {
      // A kind whose definition was deleted is not served any more.
      if (error instanceof KubeError && error.status === 404) return [];
      throw error;
    }
  });
  return (await Promise.all(found)).flat();
}

it('the commands of the documentation remove the installation that all tests have used, completely', async () => {
  const { folder, sh } = await sharedInstallation();
  const manifests = join(folder, 'manifests');
  expect((await present(manifests)).length).toBeGreaterThan(20);
  // First the configuration of Envoy Gateway, as before the installation.
  await sh('helm restore');
  await sh('kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway');
  await sh('kubectl -n envoy-gateway-system rollout status deployment/envoy-gateway --timeout=300s');
  const [removal = []] = documentedCommands('install.md', 'Remove');
  for (const command of removal) await sh(command);
  forgetInstallation();
  await removeImages();
  expect(await present(manifests)).toEqual([]);
  const hostnames = (await listNodes(cluster.tailnet.admin)).map(({ hostname }) => hostname);
  expect(hostnames.toSorted()).toEqual(cluster.remotes.map(({ hostname }) => hostname).toSorted());
});
