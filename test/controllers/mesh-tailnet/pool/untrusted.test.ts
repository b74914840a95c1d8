import { afterEach, describe, expect, it } from 'vitest';
import { FAULTS } from '../../../../lab/control-api/faults.ts';
import type { Installation } from '../../../support/controllers/mesh-tailnet/installation.ts';
import { expectReady, startPoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

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

describe('a Secret that has the name of a member', () => {
  const FOREIGN = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'meshd-example-0' },
    data: { password: 'x' },
  } as const;
  const foreignData = ({ namespace }: Installation) => namespace.readSecret(FOREIGN.metadata.name)?.data;

  it('and was not created for it is neither changed nor deleted, and no key is created for it', async () => {
    const { scene, installation } = await newScene();
    await installation.namespace.apply(FOREIGN);
    installation.put({ pool: { replicas: 1 } });
    await scene.steps(60, 5000);
    expect(installation.condition('PoolReady')?.message).toContain('a Secret meshd-example-0 exists');
    expect(scene.api.countByRoute()['keys.create']).toBeUndefined();
    installation.remove();
    await scene.until(() => expect(installation.get()).toBeUndefined());
    expect(foreignData(installation)).toEqual(FOREIGN.data);
  });

  it('stops the member only until it is deleted', async () => {
    const { scene, installation } = await newScene();
    await installation.namespace.apply(FOREIGN);
    installation.put();
    await scene.steps(20);
    installation.namespace.delete('Secret', FOREIGN.metadata.name);
    await scene.until(() => expectReady(scene, installation, 2));
  });

  it('stays where the annotation of the StatefulSet counts it as one', async () => {
    const { scene, installation } = await readyScene();
    const metadata = { name: 'meshd-example-2' };
    await installation.namespace.apply({ ...FOREIGN, metadata });
    const statefulSet = installation.namespace.find('StatefulSet', 'meshd-example');
    const annotations = { ...statefulSet?.metadata.annotations, 'mesh-gateway.dev/members': '1000000000' };
    await installation.namespace.apply({
      ...statefulSet,
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { ...statefulSet?.metadata, name: 'meshd-example', annotations },
    });
    await scene.steps(20, 5000);
    expect(installation.namespace.readSecret('meshd-example-2')?.data).toEqual(FOREIGN.data);
  });
});

describe('a list of devices that lacks those of mesh pods', () => {
  it('does not give a pod that restarts another identity, also after a restart of the operator', async () => {
    const { scene, installation } = await readyScene();
    const before = scene.joined().map(({ nodeId }) => nodeId);
    const end = scene.api.fail({
      routes: ['devices.list'],
      fault: { is: 'answer', status: 200, json: { devices: [] } },
    });
    await installation.restart();
    installation.kubelet.delete('meshd-example-0');
    await scene.steps(20);
    end();
    await scene.until(() => expectReady(scene, installation, 2));
    expect(scene.joined().map(({ nodeId }) => nodeId)).toEqual(before);
  });
});

describe('a device', () => {
  it('with a longer name than a status may have does not prevent the write of the status', async () => {
    const { scene, installation } = await newScene();
    scene.api.addDevice({ hostname: 'web', name: `web.${'x'.repeat(400)}` });
    installation.put();
    await scene.until(() =>
      expect(installation.condition('Authenticated')).toMatchObject({ reason: 'TailnetMismatch' }),
    );
  });

  it.each([
    ['that is shared in from another tailnet', { isExternal: true, tags: ['tag:mesh'] }],
    ['with the tag of another owner', { tags: ['tag:other'] }],
    ['of a user', { tags: [] }],
  ])('%s stays where it has the hostname of a mesh pod', async (_, device) => {
    const { scene, installation } = await newScene();
    const { nodeId } = scene.api.addDevice({ hostname: `meshd-example-0-${installation.id}`, ...device });
    installation.put();
    await scene.until(() => expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' }));
    installation.remove();
    await scene.until(() => expect(installation.get()).toBeUndefined());
    expect(scene.api.state.devices.all().map(one => one.nodeId)).toEqual([nodeId]);
  });
});
