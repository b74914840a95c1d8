import { afterEach, describe, expect, it } from 'vitest';
import { FAULTS } from '../../../lab/control-api/faults.ts';
import type { Installation } from '../../support/mesh-tailnet/installation.ts';
import { expectReady, startPoolScene } from '../../support/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../support/mesh-tailnet/scene.ts';

const scenes: PoolScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

async function newScene() {
  const scene = await startPoolScene();
  scenes.push(scene);
  return { scene, installation: scene.install() };
}

async function readyScene() {
  const { scene, installation } = await newScene();
  installation.put();
  await scene.until(() => expectReady(scene, installation, 2));
  return { scene, installation };
}

/** The Secret of the second member, which a pool of one loses. */
const SECOND = 'meshd-example-1';

/** Removes the second member, as far as that goes. */
async function shrink(scene: PoolScene, installation: Installation): Promise<void> {
  installation.put({ pool: { replicas: 1 } });
  await scene.until(() => expect(installation.secrets()).toEqual(['meshd-example-0']));
}

function hostnames(scene: PoolScene): readonly string[] {
  return scene.api.state.devices.all().map(({ hostname }) => hostname);
}

describe('a mesh pod that writes into its Secret', () => {
  it.each(['id', 'nodeId'] as const)('the %s of another device does not get it deleted', async field => {
    const { scene, installation } = await readyScene();
    const laptop = scene.api.addDevice({ hostname: 'laptop' });
    installation.namespace.patchSecret(SECOND, { data: { device_id: laptop[field] } });
    await shrink(scene, installation);
    expect(hostnames(scene)).toContain('laptop');
  });

  it('the id of another device does not get it deleted where devices cannot be listed', async () => {
    const { scene, installation } = await readyScene();
    const laptop = scene.api.addDevice({ hostname: 'laptop' });
    installation.namespace.patchSecret(SECOND, { data: { device_id: laptop.nodeId } });
    scene.api.fail({ routes: ['devices.list'], fault: FAULTS.internalError });
    await installation.restart();
    await shrink(scene, installation);
    expect(hostnames(scene)).toContain('laptop');
  });

  it.each(['..', '../../tailnet/-/keys', '☃', ' '])(
    'the device id "%s" does not prevent its removal',
    async id => {
      const { scene, installation } = await readyScene();
      installation.namespace.patchSecret(SECOND, { data: { device_id: id } });
      await shrink(scene, installation);
      expectReady(scene, installation, 1);
    },
  );

  it('the id of another key does not get it revoked, nor prevent its removal', async () => {
    const { scene, installation } = await newScene();
    const client = scene.api.addClient(['devices:core']);
    installation.kubelet.holdImages();
    installation.put();
    await scene.until(() => expect(installation.kubelet.names()).toHaveLength(2));
    installation.namespace.patchSecret(SECOND, { annotations: { 'mesh-gateway.dev/join-key': client.id } });
    await shrink(scene, installation);
    const deleted = scene.api.requests().filter(({ route }) => route === 'keys.delete');
    expect(deleted).toHaveLength(1);
    expect(deleted.filter(({ path }) => path.includes(client.id))).toEqual([]);
  });
});
