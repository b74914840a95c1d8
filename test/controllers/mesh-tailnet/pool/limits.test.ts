import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Installation } from '../../../support/controllers/mesh-tailnet/installation.ts';
import { startPoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

const scenes: PoolScene[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const scene of scenes.splice(0)) await scene.close();
});

async function newScene() {
  const scene = await startPoolScene();
  scenes.push(scene);
  return { scene, installation: scene.install() };
}

/** The number of calls of the controller that match. */
function count(installation: Installation, pattern: RegExp): number {
  return installation.calls().filter(call => pattern.test(call)).length;
}

const MINUTES = 5;

async function pass(scene: PoolScene): Promise<void> {
  await scene.steps(MINUTES * 12, 5000);
}

describe('a pool that cannot become ready', () => {
  it('does not write its status for each error of the control API, and waits between its requests', async () => {
    const { scene, installation } = await newScene();
    let requests = 100;
    scene.api.fail({
      routes: ['keys.create'],
      fault: () => {
        const message = `request ${++requests} failed`;
        return { is: 'answer', status: 500, json: { message } };
      },
    });
    installation.put({ syncInterval: '30s' });
    await pass(scene);
    // Every 10 s, and once more for each write of the status.
    expect(requests - 100).toBeLessThanOrEqual(MINUTES * 6 + 3);
    expect(count(installation, /^replaceStatus/)).toBeLessThanOrEqual(3);
    // All objects are applied again every 10 minutes.
    expect(count(installation, /^apply StatefulSet/)).toBeLessThanOrEqual(2);
    expect(installation.events.length).toBeLessThanOrEqual(5);
    expect(installation.lines.filter(line => line.includes('"failed to create device"'))).not.toEqual([]);
  });

  it('is read every 10 s after 5 minutes, and reconciled at once when its pods change', async () => {
    const { scene, installation } = await newScene();
    installation.kubelet.holdImages();
    installation.put({ syncInterval: '30s' });
    await pass(scene);
    const before = count(installation, /^get StatefulSet/);
    await pass(scene);
    expect(count(installation, /^get StatefulSet/) - before).toBeLessThanOrEqual(MINUTES * 6 + 2);
    installation.kubelet.releaseImages();
    await scene.steps(10);
    expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' });
  });

  it('gets one key a minute for each member where the control server rejects all of them', async () => {
    const { scene, installation } = await newScene();
    vi.spyOn(scene.api, 'join').mockImplementation(() => {
      throw new Error('invalid key: API key does not exist');
    });
    installation.put({ pool: { replicas: 1 } });
    await pass(scene);
    const { 'keys.create': created = 0 } = scene.api.countByRoute();
    expect(created).toBeGreaterThan(MINUTES / 2);
    expect(created).toBeLessThanOrEqual(MINUTES + 2);
  });

  it('gets one key more where its key was rejected and its node does not respond any more', async () => {
    const { scene, installation } = await newScene();
    const { kubelet, namespace } = installation;
    kubelet.holdImages();
    installation.put({ pool: { replicas: 1 } });
    await scene.until(() => expect(kubelet.names()).toHaveLength(1));
    const { annotations = {} } = namespace.readSecret('meshd-example-0') ?? {};
    scene.api.revoke(annotations['mesh-gateway.dev/join-key'] ?? '');
    kubelet.keepDeleted();
    kubelet.releaseImages();
    await pass(scene);
    expect(scene.api.countByRoute()['keys.create']).toBe(2);
  });

  it('gets one key a minute where meshd asks for more', async () => {
    const { scene, installation } = await newScene();
    const { kubelet, namespace } = installation;
    kubelet.holdImages();
    installation.put({ pool: { replicas: 1 } });
    for (let left = MINUTES * 12; left > 0; left--) {
      const { authkey = '' } = namespace.readSecret('meshd-example-0')?.data ?? {};
      namespace.patchSecret('meshd-example-0', { data: { reissue_authkey: authkey } });
      await scene.step(5000);
    }
    expect(scene.api.countByRoute()['keys.create']).toBeLessThanOrEqual(MINUTES + 2);
  });
});
