import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMPONENTS } from '../../../src/api/names.ts';
import type { KubeObject } from '../../../lab/kube/object.ts';
import { refOf } from '../../../lab/kube/object.ts';
import { readManifests } from '../../../lab/kube/manifests.ts';
import { ENVOY_GATEWAY } from '../../../lab/cluster/envoy-gateway.ts';
import { waitForAbsence, waitForObject } from '../../../lab/kube/wait.ts';
import { until } from '../../../lab/process/wait.ts';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { podsWith } from '../../../lab/kube/pods.ts';
import { connectionsSeen, killPod } from '../../support/cluster/install/connections.ts';
import { nodeImages } from '../../../lab/install/image.ts';
import { failuresUnderLoad } from '../../support/cluster/install/scene-load.ts';
import {
  imagesIn,
  olderManifests,
  putManifests,
  todaysManifests,
} from '../../support/cluster/install/older.ts';
import { waitForReplicas } from '../../support/cluster/install/replicas.ts';
import { installScene, PLACE } from '../../support/cluster/install/scene.ts';
import type { InstallScene } from '../../support/cluster/install/scene.ts';
import { IMAGE } from '../../support/cluster/install/shared.ts';

const { operator, extensionServer } = COMPONENTS;
const OWN = PLACE.system;
const older = olderManifests();
const images = nodeImages(locateBinaries(process.env));
const otherImages = imagesIn(older).filter(image => image !== IMAGE.committed);

let scene: InstallScene;
beforeAll(async () => {
  scene = await installScene();
  for (const image of otherImages) await images.rename(IMAGE.committed, image);
  await scene.use();
  await scene.answerOf('web-1');
});
afterAll(async () => {
  await scene.end();
  await images.remove(...otherImages);
});

/** Work under load on the scene. */
const underLoad = (what: string, work: () => Promise<unknown>) => failuresUnderLoad(scene, what, work);

/** Waits for the pod of the extension server that Envoy Gateway is connected to. */
function calledPod(): Promise<KubeObject> {
  return until('Envoy Gateway to be connected to an extension server', connectedPod);
}

async function connectedPod(): Promise<KubeObject | undefined> {
  const addressOf = ({ status }: KubeObject) => (status as { readonly podIP?: string }).podIP ?? '';
  const labels = { 'control-plane': 'envoy-gateway' };
  const callers = (await podsWith(scene.client, ENVOY_GATEWAY.namespace, labels)).map(addressOf);
  const connections = connectionsSeen().filter(({ from, port }) => port === 5005 && callers.includes(from));
  const pods = await podsWith(scene.client, OWN, { 'app.kubernetes.io/name': extensionServer });
  return pods.find(pod => connections.some(({ to }) => to === addressOf(pod)));
}

function hasRestarted({ status }: KubeObject): boolean {
  const { containerStatuses } = status as {
    readonly containerStatuses: readonly { readonly restartCount: number; readonly ready: boolean }[];
  };
  return containerStatuses.every(({ restartCount, ready }) => restartCount > 0 && ready);
}

describe('under load', () => {
  it('the extension server that Envoy Gateway calls is deleted, and no request fails', async () => {
    const failures = await underLoad('an extension server deleted', async () => {
      const pod = refOf(await calledPod());
      await scene.client.remove(pod);
      await waitForAbsence(scene.client, pod);
      await waitForReplicas(scene.client, extensionServer, 2);
    });
    expect(failures).toEqual([]);
  });

  it('the extension server that Envoy Gateway calls is killed, and no request fails', async () => {
    const failures = await underLoad('an extension server killed', async () => {
      const pod = await calledPod();
      killPod(pod);
      await waitForObject(scene.client, refOf(pod), 'to run again', hasRestarted);
      await waitForReplicas(scene.client, extensionServer, 2);
    });
    expect(failures).toEqual([]);
  });

  it.each([extensionServer, operator])('%s is replaced pod by pod', async name => {
    const failures = await underLoad(`${name} restarted`, async () => {
      await scene.shell.sh(`kubectl -n ${OWN} rollout restart deployment/${name}`);
      await scene.shell.sh(`kubectl -n ${OWN} rollout status deployment/${name} --timeout=300s`);
      await waitForReplicas(scene.client, name, 2);
    });
    expect(failures).toEqual([]);
  });
});

/** The uid of each object of the manifests, which a recreated one would not keep. */
async function identities(): Promise<ReadonlyMap<string, string>> {
  const objects = readManifests(join(scene.shell.folder, 'manifests')).filter(
    ({ kind }) => kind !== 'Kustomization',
  );
  const found = objects.map(async (object: KubeObject) => {
    const { metadata } = await scene.client.get(refOf(object));
    return [`${object.kind} ${object.metadata.name ?? ''}`, metadata.uid ?? ''] as const;
  });
  return new Map(await Promise.all(found));
}

describe('another version', () => {
  it('is installed and rolled back without a failed request, and no object is recreated', async () => {
    const today = todaysManifests();
    const before = await identities();
    expect(before.size).toBeGreaterThan(15);
    const apply = async (manifests: typeof older) => {
      putManifests(join(scene.shell.folder, 'manifests'), manifests);
      await scene.shell.sh('kubectl apply --server-side -k manifests');
      for (const name of [operator, extensionServer]) await waitForReplicas(scene.client, name, 2);
      // One version may have objects that the other has not.
      const recreated = [...(await identities())].filter(([name, uid]) => (before.get(name) ?? uid) !== uid);
      expect(recreated).toEqual([]);
    };
    const failures = await underLoad(`to ${older.from} and back`, async () => {
      await apply(older);
      await apply(today);
    });
    expect(failures).toEqual([]);
    expect(await scene.shell.sh('kubectl diff --server-side -k manifests')).toBe('');
  });
});
