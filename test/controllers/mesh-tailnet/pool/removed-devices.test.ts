import { describe, expect, it } from 'vitest';
import { FIRST, poolScenes, secretOf } from '../../../support/controllers/mesh-tailnet/pool-scenes.ts';
import { expectReady } from '../../../support/controllers/mesh-tailnet/scene.ts';
import { IS_LONG } from '../../../support/eventually.ts';

const { sceneOf, readyScene } = poolScenes();

describe('a member whose device was removed', () => {
  it('gets another device where an admin has removed its own', async () => {
    const { scene, installation } = await readyScene();
    const { device_id: id = '' } = secretOf(installation);
    scene.api.removeDevice(id);
    await scene.until(() => expect(installation.status().pool?.ready).toBe(1));
    await scene.until(() => expectReady(scene, installation, 2));
    expect(secretOf(installation)['device_id']).not.toBe(id);
  });

  it('gets another device where headscale has removed its own, which it does not notice', async () => {
    const { scene, installation } = await readyScene(2, {}, { dialect: 'headscale' });
    const { device_id: id = '' } = secretOf(installation);
    const removedAt = scene.clock.now();
    scene.api.removeDevice(id);
    await scene.until(() => expect(installation.kubelet.isReady(FIRST)).toBe(false));
    // One interval between lists, and a step.
    expect(scene.clock.now() - removedAt).toBeLessThanOrEqual(6000);
    expect(installation.status().pool?.ready).toBe(1);
    expect(installation.condition('PoolReady')).toMatchObject({ status: 'False', reason: 'DeviceRemoved' });
    expect(installation.condition('PoolReady')?.message).toContain(`${FIRST}-${installation.id}`);
    await scene.until(() => {
      expect(['PoolReady', 'DeviceRemoved']).toContain(installation.condition('PoolReady')?.reason);
      expectReady(scene, installation, 2);
    });
    expect(scene.clock.now() - removedAt).toBeLessThanOrEqual(70_000);
    expect(secretOf(installation)['device_id']).not.toBe(id);
    expect(installation.withoutDevice.of('example')).toBeUndefined();
  });

  it('gets another device where headscale removed its own before the operator started', async () => {
    const { scene, installation } = await readyScene(2, {}, { dialect: 'headscale' });
    const { device_id: id = '' } = secretOf(installation);
    scene.api.removeDevice(id);
    await installation.restart();
    await scene.until(() => expect(installation.kubelet.isReady(FIRST)).toBe(false));
    await scene.until(() => expectReady(scene, installation, 2));
    expect(secretOf(installation)['device_id']).not.toBe(id);
  });

  it('is replaced while another one carries traffic where headscale has removed both, one by one', async () => {
    const { scene, installation } = await readyScene(2, {}, { dialect: 'headscale' });
    for (const { nodeId } of scene.joined()) scene.api.removeDevice(nodeId);
    let fewest = 2;
    await scene.until(() => {
      const ready = installation.kubelet.names().filter(pod => installation.kubelet.isReady(pod));
      fewest = Math.min(fewest, ready.length);
      expect(scene.joined()).toHaveLength(2);
      expectReady(scene, installation, 2);
    });
    expect(fewest).toBe(1);
  });

  it.each(['vendor', 'headscale'] as const)(
    'without its device is found at once where checks of a tailnet of %s reach nothing, whatever the interval of lists is',
    async dialect => {
      const { scene, installation } = await readyScene(2, { syncInterval: '2m' }, { dialect });
      await scene.steps(13, 10_000);
      for (const { nodeId } of scene.joined()) scene.api.removeDevice(nodeId);
      const removedAt = scene.clock.now();
      await installation.confirmMembers();
      expect(installation.withoutDevice.of('example')).toHaveLength(2);
      await scene.until(() =>
        expect(installation.condition('PoolReady')).toMatchObject({
          status: 'False',
          reason: 'DeviceRemoved',
        }),
      );
      expect(installation.condition('Ready')).toMatchObject({ status: 'False', reason: 'PoolNotReady' });
      expect(scene.clock.now() - removedAt).toBeLessThanOrEqual(5000);
      await scene.until(() => {
        expect(installation.status().pool?.ready).toBe(2);
        expect(installation.withoutDevice.of('example')).toBeUndefined();
      });
    },
  );

  it('costs one request for each device in 30 s where checks of a tailnet reach nothing', async () => {
    const { scene, installation } = await readyScene();
    const before = scene.api.countByRoute()['device.get'] ?? 0;
    for (let times = 0; times < 20; times++) {
      await installation.confirmMembers();
      await scene.step();
    }
    expect((scene.api.countByRoute()['device.get'] ?? 0) - before).toBe(2);
  });

  it('keeps its device where lists lack it, and it exists', async () => {
    const { scene, installation } = await readyScene();
    const end = scene.api.fail({
      routes: ['devices.list'],
      fault: { is: 'answer', status: 200, json: { devices: [] } },
    });
    await scene.steps(120, 2000);
    expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' });
    end();
    await scene.until(() => expectReady(scene, installation, 2));
    expect(scene.api.countByRoute()['keys.create']).toBe(2);
  });

  it('is replaced ever more rarely where the control API shows none of its devices', async () => {
    const { scene } = await readyScene();
    scene.api.fail({ routes: ['devices.list'], fault: { is: 'answer', status: 200, json: { devices: [] } } });
    scene.api.fail({ routes: ['device.get'], fault: { is: 'answer', status: 404, json: { message: 'no' } } });
    const keys = () => scene.api.countByRoute()['keys.create'] ?? 0;
    const passMinutes = (minutes: number) => scene.steps(3 * minutes, 20_000);
    await passMinutes(20);
    const first = keys();
    await passMinutes(IS_LONG ? 80 : 20);
    const before = keys();
    await passMinutes(20);
    expect(keys() - before).toBeLessThan(first / 2);
    expect(keys()).toBeLessThan(20);
  });

  it('gets another device where an admin has removed its own before its id was stored', async () => {
    const { scene, installation } = await sceneOf();
    installation.put();
    await scene.until(() =>
      expect(Object.keys(secretOf(installation))).toEqual(['pod_uid', '_current-profile']),
    );
    for (const { nodeId } of scene.joined()) scene.api.removeDevice(nodeId);
    await scene.until(() => expectReady(scene, installation, 2));
  });
});
