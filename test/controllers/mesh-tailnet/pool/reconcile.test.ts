import { describe, expect, it } from 'vitest';
import type { Installation } from '../../../support/controllers/mesh-tailnet/installation.ts';
import { FIRST, poolScenes, secretOf } from '../../../support/controllers/mesh-tailnet/pool-scenes.ts';
import {
  expectMembers,
  expectReady,
  expectRemoved,
} from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';
import { IS_LONG } from '../../../support/eventually.ts';

const { sceneOf, readyScene } = poolScenes();

describe('a pool', () => {
  it.each(['vendor', 'headscale'] as const)(
    'joins the tailnet of %s, and leaves nothing behind',
    async dialect => {
      const { scene, installation } = await sceneOf({ dialect });
      installation.put();
      await scene.until(() => expectReady(scene, installation, 2));
      installation.remove();
      await scene.until(() => expectRemoved(scene, installation));
      expect(installation.kubelet.rejected).toEqual([]);
    },
  );

  it('leaves nothing behind after many cycles', async () => {
    const { scene, installation } = await sceneOf();
    const cycles = IS_LONG ? 20 : 5;
    for (let cycle = 0; cycle < cycles; cycle++) {
      installation.put();
      await scene.until(() => expectReady(scene, installation, 2));
      installation.remove();
      await scene.until(() => expectRemoved(scene, installation));
    }
    expect(scene.api.countByRoute()['keys.create']).toBe(2 * cycles);
  });

  it('writes nothing and requests no key for 5 minutes once it is ready, and none after a restart of the operator', async () => {
    const { scene, installation } = await readyScene();
    await scene.steps(10);
    const before = installation.calls().length;
    await scene.steps(60, 5000);
    const reads = ['secret', 'get', 'devices.list'];
    const isRead = (call: string) => reads.includes(call.split(' ')[0] ?? '');
    expect(
      installation
        .calls()
        .slice(before)
        .filter(call => !isRead(call)),
    ).toEqual([]);
    await installation.restart();
    await scene.steps(10);
    expect(installation.calls().filter(call => call.startsWith('keys.') || call.includes('Secret'))).toEqual(
      [],
    );
    expectReady(scene, installation, 2);
  });

  it('stays as it is while the control API is away, also after a restart of the operator', async () => {
    const { scene, installation } = await readyScene();
    const end = scene.api.fail({ fault: { is: 'reset', when: 'before' } });
    await scene.steps(60, 5000);
    await installation.restart();
    await scene.steps(60, 5000);
    expect(installation.status().pool).toMatchObject({ ready: 2 });
    expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' });
    end();
    await scene.until(() => expectReady(scene, installation, 2));
    expect(scene.api.countByRoute()['keys.create']).toBe(2);
  });

  it('grows and shrinks, and the first member stays', async () => {
    const { scene, installation } = await readyScene(2);
    const { device_id: id } = secretOf(installation);
    for (const replicas of [3, 1]) {
      installation.put({ pool: { replicas } });
      await scene.until(() => expectReady(scene, installation, replicas));
      expect(secretOf(installation)).toMatchObject({ device_id: id });
    }
  });

  it('replaces its pods one by one after a change of the image, with the same devices', async () => {
    const { scene, installation } = await readyScene(2);
    const devices = scene.joined().map(({ nodeId }) => nodeId);
    const uids = () => installation.pods().map(({ metadata }) => metadata.uid);
    const before = uids();
    let fewest = 2;
    installation.put({ pool: { replicas: 2, image: 'tailscale/tailscale:v1.200.0' } });
    await scene.until(() => {
      fewest = Math.min(
        fewest,
        installation.kubelet.names().filter(pod => installation.kubelet.isReady(pod)).length,
      );
      expect(uids().filter(uid => before.includes(uid))).toEqual([]);
      expectReady(scene, installation, 2);
    });
    expect(fewest).toBe(1);
    expect(scene.joined().map(({ nodeId }) => nodeId)).toEqual(devices);
    expect(scene.api.countByRoute()['keys.create']).toBe(2);
  });
});

describe('a member', () => {
  it('is checked through before a list has shown its device', async () => {
    const { scene, installation } = await sceneOf();
    installation.put({ syncInterval: '60s' });
    await scene.until(() => expect(installation.kubelet.isReady(FIRST)).toBe(true));
    await scene.steps(10);
    expect(installation.withoutDevice.of('example')).toBeUndefined();
    expect(installation.condition('PoolReady')?.message).toBe('2 of 2 mesh pods are ready');
  });

  it('keeps its device when its pod is deleted or its container is killed', async () => {
    const { scene, installation } = await readyScene();
    const { device_id: id } = secretOf(installation);
    installation.kubelet.delete(FIRST);
    await scene.until(() => expect(installation.status().pool?.ready).toBe(1));
    await scene.until(() => expectReady(scene, installation, 2));
    installation.kubelet.kill(FIRST);
    await scene.until(() => expectReady(scene, installation, 2));
    expect(secretOf(installation)).toMatchObject({ device_id: id });
  });

  it('logs in again where its node key has expired, as the same device', async () => {
    const { scene, installation } = await readyScene();
    const { device_id: id = '' } = secretOf(installation);
    scene.api.changeDevice(id, { expiresMs: scene.now().getTime(), keyExpiryDisabled: false });
    await scene.until(() =>
      expect(installation.condition('PoolReady')).toMatchObject({ status: 'False', reason: 'KeyExpired' }),
    );
    await scene.until(() => expectReady(scene, installation, 2));
    expect(secretOf(installation)).toMatchObject({ device_id: id });
  });

  it.each(['vendor', 'headscale'] as const)(
    'is back within 20 s of the expiry of its node key on %s, however far apart lists are',
    async dialect => {
      const { scene, installation } = await readyScene(2, { syncInterval: '2m' }, { dialect });
      await scene.steps(13, 10_000);
      const { device_id: id = '' } = secretOf(installation);
      const expiredAt = scene.clock.now();
      scene.api.changeDevice(id, { expiresMs: scene.now().getTime(), keyExpiryDisabled: false });
      await scene.until(() => expect(installation.kubelet.isReady(FIRST)).toBe(false));
      await scene.until(() => expect(installation.kubelet.isReady(FIRST)).toBe(true));
      expect(scene.clock.now() - expiredAt).toBeLessThanOrEqual(20_000);
      expect(installation.kubelet.rejected).toEqual([]);
      // One for each member, and one to log in again.
      expect(scene.api.countByRoute()['keys.create']).toBe(3);
      // Headscale leaves a device expired that logs in again.
      expect(secretOf(installation)['device_id'] === id).toBe(dialect === 'vendor');
    },
  );

  it('gets another key where its key was revoked before it was used', async () => {
    const { scene, installation } = await sceneOf();
    installation.kubelet.holdImages();
    installation.put();
    await scene.until(() => expect(installation.kubelet.names()).toHaveLength(2));
    const { annotations = {} } = installation.namespace.readSecret(FIRST) ?? {};
    scene.api.revoke(annotations['mesh-gateway.dev/join-key'] ?? '');
    installation.kubelet.releaseImages();
    await scene.until(() => expect(installation.kubelet.rejected).toHaveLength(1));
    await scene.until(() => expectReady(scene, installation, 2));
    expect(installation.kubelet.rejected).toHaveLength(1);
  });

  it('keeps a key that its container has not used when it ends', async () => {
    const { scene, installation } = await sceneOf();
    installation.kubelet.holdImages();
    installation.put();
    await scene.until(() => expect(installation.kubelet.names()).toHaveLength(2));
    for (const pod of installation.kubelet.names()) installation.kubelet.kill(pod);
    await scene.until(() => expectReady(scene, installation, 2));
    expect(scene.api.countByRoute()['keys.create']).toBe(2);
  });

  it('gets another key where its key expired before it started', async () => {
    const { scene, installation } = await sceneOf();
    installation.kubelet.holdImages();
    installation.put({ configuration: { devices: { keyExpiry: '1m' } } });
    await scene.steps(90, 2000);
    installation.kubelet.releaseImages();
    await scene.until(() => expectReady(scene, installation, 2));
    expect(installation.kubelet.rejected).toEqual([]);
    expect(scene.api.countByRoute()['keys.create']).toBeLessThan(10);
  });

  it('gets another key where it asks for one, and the first one is revoked', async () => {
    const { scene, installation } = await sceneOf();
    installation.kubelet.holdImages();
    installation.put();
    await scene.until(() => expect(installation.kubelet.names()).toHaveLength(2));
    const { authkey = '' } = secretOf(installation);
    installation.namespace.patchSecret(FIRST, { data: { reissue_authkey: authkey } });
    await scene.until(() => expect(secretOf(installation)['authkey']).not.toBe(authkey));
    expect(secretOf(installation)['reissue_authkey']).toBeUndefined();
    installation.kubelet.releaseImages();
    await scene.until(() => expectReady(scene, installation, 2));
    expect(installation.kubelet.rejected).toEqual([]);
  });

  it.each([{ preauth: false }, { preauth: true, requireApproval: true }])(
    'waits for approval with %j, which the condition asks for',
    async devices => {
      const { scene, installation } = await sceneOf({ settings: { devicesApprovalOn: true } });
      installation.put({ configuration: { devices: { ...devices, keyExpiry: '1m' } } });
      await scene.until(() =>
        expect(installation.condition('PoolReady')).toMatchObject({ reason: 'AwaitingApproval' }),
      );
      expect(installation.condition('PoolReady')?.message).toContain(`${FIRST}-${installation.id}`);
      await scene.steps(60, 5000);
      for (const { nodeId } of scene.joined()) scene.api.changeDevice(nodeId, { authorized: true });
      await scene.until(() => expectReady(scene, installation, 2));
      expect(scene.api.countByRoute()['keys.create']).toBe(2);
    },
  );

  it('reports a limit of the tailnet, and starts once that is raised', async () => {
    const { scene, installation } = await sceneOf();
    const fault = { is: 'answer', status: 402, json: { message: 'device limit reached' } } as const;
    const raise = scene.api.fail({ routes: ['keys.create'], fault });
    installation.put();
    await scene.until(() =>
      expect(installation.condition('PoolReady')).toMatchObject({
        reason: 'LimitReached',
        message: expect.stringContaining('402 device limit reached') as string,
      }),
    );
    raise();
    await scene.until(() => expectReady(scene, installation, 2));
  });

  it('needs no approval by default, where the tailnet requires it', async () => {
    const { scene, installation } = await sceneOf({ settings: { devicesApprovalOn: true } });
    installation.put();
    await scene.until(() => expectReady(scene, installation, 2));
  });
});

describe('a pool of proxies that others run', () => {
  it('takes the place of mesh pods, which are removed', async () => {
    const { scene, installation } = await readyScene();
    installation.put({ pool: { mode: 'External', addresses: ['192.0.2.1:1055'] } });
    await scene.until(() => {
      expect(installation.get()?.metadata.finalizers ?? []).toEqual([]);
      expectMembers(scene, installation, 0);
    });
    expect(installation.condition('Ready')).toMatchObject({ status: 'True' });
  });
});

describe('a deletion', () => {
  it('waits while the control API is away, and is finished with the annotation skip-cleanup', async () => {
    const { scene, installation } = await readyScene();
    scene.api.fail({ fault: { is: 'reset', when: 'before' } });
    installation.remove();
    await scene.steps(60, 2000);
    expect(installation.condition('Ready')).toMatchObject({ reason: 'Deleting' });
    expect(installation.secrets()).toHaveLength(2);
    installation.put({ pool: { replicas: 2 } }, { annotations: { 'mesh-gateway.dev/skip-cleanup': 'true' } });
    await scene.until(() => {
      expect(installation.get()).toBeUndefined();
      expect(installation.secrets()).toEqual([]);
      expect(installation.kubelet.names()).toEqual([]);
    });
  });

  it('is finished where the Secret with the credentials was deleted with it', async () => {
    const { scene, installation } = await readyScene();
    installation.namespace.delete('Secret', 'mesh-oauth');
    installation.remove();
    await scene.until(() => expectRemoved(scene, installation));
  });

  it('is finished after the namespace was deleted and the operator was installed again', async () => {
    const { scene, installation } = await readyScene();
    installation.remove();
    await installation.reinstall();
    await scene.until(() => expectRemoved(scene, installation));
  });

  it('goes on once the control API is back', async () => {
    const { scene, installation } = await readyScene();
    const end = scene.api.fail({ fault: { is: 'reset', when: 'before' } });
    installation.remove();
    await scene.steps(30, 2000);
    end();
    await scene.until(() => expectRemoved(scene, installation));
  });
});

describe('credentials of another tailnet', () => {
  /** Responds as the control API does with such credentials; the returned function ends that. */
  function answerForAnother({ api }: PoolScene): () => void {
    const devices = [{ nodeId: 'n1', name: 'web.other.ts.net', hostname: 'web' }];
    const answers = {
      'devices.list': { status: 200, json: { devices } },
      'device.get': { status: 404, json: { message: 'no manageable device matching this ID found' } },
      'device.delete': { status: 404, json: { message: 'no manageable device matching this ID found' } },
      'keys.list': { status: 200, json: { keys: [] } },
      'keys.delete': { status: 404, json: { message: 'key not found' } },
    };
    const ends = Object.entries(answers).map(([route, answer]) =>
      api.fail({ routes: [route], fault: { is: 'answer', ...answer } }),
    );
    return () => {
      for (const end of ends) end();
    };
  }

  it('take no identity from a member that is not ready', async () => {
    const { scene, installation } = await readyScene();
    const end = answerForAnother(scene);
    installation.kubelet.holdImages();
    installation.kubelet.delete(FIRST);
    await scene.steps(60, 5000);
    expect(installation.condition('Authenticated')).toMatchObject({ reason: 'TailnetMismatch' });
    end();
    installation.kubelet.releaseImages();
    await scene.until(() => expectReady(scene, installation, 2));
    expect(scene.api.countByRoute()['keys.create']).toBe(2);
  });

  it('do not let a deletion forget the devices', async () => {
    const { scene, installation } = await readyScene();
    const end = answerForAnother(scene);
    await scene.until(() =>
      expect(installation.condition('Authenticated')).toMatchObject({ reason: 'TailnetMismatch' }),
    );
    installation.remove();
    await scene.steps(60, 5000);
    expect(installation.condition('Ready')?.message).toContain('skip-cleanup');
    expect(scene.joined()).toHaveLength(2);
    end();
    await scene.until(() => expectRemoved(scene, installation));
  });
});

describe('devices that no Secret names any more', () => {
  it('are removed after the namespace was deleted and the operator was installed again', async () => {
    const { scene, installation } = await readyScene();
    const before = scene.joined().map(({ nodeId }) => nodeId);
    await installation.reinstall();
    await scene.until(() => expect(scene.joined()).toHaveLength(4));
    await scene.until(() => expectReady(scene, installation, 2));
    expect(scene.joined().filter(({ nodeId }) => before.includes(nodeId))).toEqual([]);
  });

  it('are removed where a container was killed after it joined, before it stored its identity', async () => {
    const { scene, installation } = await sceneOf();
    installation.put();
    await scene.until(() => expect(scene.joined()).toHaveLength(2));
    for (const pod of installation.kubelet.names()) installation.kubelet.kill(pod);
    await scene.until(() => expect(installation.kubelet.rejected).toHaveLength(2));
    await scene.until(() => expectReady(scene, installation, 2));
  });
});

describe('pools in one tailnet', () => {
  it('of two installations leave the devices and keys of each other alone', async () => {
    const { scene, installation } = await sceneOf();
    const other = scene.install('e5f6a7b8');
    const devicesOf = ({ id }: Installation) =>
      scene.joined().filter(({ hostname }) => hostname.endsWith(id));
    for (const one of [installation, other]) {
      one.put();
      await scene.until(() => expect(one.condition('PoolReady')).toMatchObject({ status: 'True' }));
    }
    const before = devicesOf(other);
    expect(before).toHaveLength(2);
    installation.remove();
    await scene.until(() => expect(installation.get()).toBeUndefined());
    await scene.steps(200, 5000);
    expect(scene.joined()).toEqual(before);
    expectReady(scene, other, 2);
  });

  it('of two MeshTailnets leave the devices and keys of each other alone', async () => {
    const { scene, installation } = await sceneOf({ dialect: 'headscale' });
    const names = ['example', 'example-0'] as const;
    for (const name of names) installation.put({ tailnet: `${name}.ts.net` }, { name });
    await scene.until(() => {
      for (const name of names) {
        expect(installation.condition('PoolReady', name)).toMatchObject({ status: 'True' });
      }
    });
    installation.remove('example-0');
    await scene.until(() => expect(installation.get('example-0')).toBeUndefined());
    await scene.steps(20);
    expectReady(scene, installation, 2);
  });
});
