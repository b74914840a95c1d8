import { afterEach, describe, expect, it } from 'vitest';
import type { Installation } from '../../../support/controllers/mesh-tailnet/installation.ts';
import {
  expectReady,
  expectRemoved,
  startPoolScene,
} from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

const scenes: PoolScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

async function readyScene() {
  const scene = await startPoolScene();
  scenes.push(scene);
  const installation = scene.install();
  installation.put();
  await scene.until(() => expectReady(scene, installation, 2));
  return { scene, installation, ids: scene.joined().map(({ nodeId }) => nodeId) };
}

/** From now on another cluster uses devices, too: they are online also where their pods here have ended. */
function keepOnline(scene: PoolScene, ids: readonly string[]): () => void {
  return scene.afterSteps(() => {
    for (const id of ids)
      if (scene.api.state.devices.current(id)) scene.api.changeDevice(id, { lastSeenMs: undefined });
  });
}

function reported(installation: Installation, reason: string): readonly string[] {
  return installation.events.filter(event => event.reason === reason).map(({ note }) => note);
}

function expectLeft(scene: PoolScene, installation: Installation, ids: readonly string[]): void {
  const left = reported(installation, 'DeviceLeft');
  expect(left).toHaveLength(ids.length);
  for (const id of ids) expect(left.join('\n')).toContain(`(${id})`);
  const existing = scene.api.state.devices.all().map(({ nodeId }) => nodeId);
  expect(existing).toEqual(expect.arrayContaining([...ids]));
}

describe('devices that a cluster uses from whose backup this one was made', () => {
  it('are left and reported where their MeshTailnet is deleted here, which ends', async () => {
    const { scene, installation, ids } = await readyScene();
    keepOnline(scene, ids);
    installation.remove();
    await scene.until(() => expect(installation.condition('Ready')?.message).toContain('still online'));
    await scene.until(() => expect(installation.get()).toBeUndefined());
    expectLeft(scene, installation, ids);
    expect(installation.secrets()).toEqual([]);
    expect(reported(installation, 'DeviceDeleted')).toEqual([]);
  });

  it('are left where no Secret names them any more', async () => {
    const { scene, installation, ids } = await readyScene();
    keepOnline(scene, ids);
    installation.remove();
    await installation.reinstall();
    await scene.until(() => expect(installation.get()).toBeUndefined());
    expectLeft(scene, installation, ids);
  });

  it('are left where a pool here shrinks, which others of the pool do not notice', async () => {
    const { scene, installation } = await readyScene();
    const second = scene.joined().find(({ hostname }) => hostname.includes('-1-'));
    const id = second?.nodeId ?? '';
    keepOnline(scene, [id]);
    installation.put({ pool: { replicas: 1 } });
    await scene.until(() => expect(installation.secrets()).toEqual(['meshd-example-0']));
    expectLeft(scene, installation, [id]);
    expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' });
  });
});

describe('devices that are shown online for a minute after their pods have ended', () => {
  it('are deleted, and none is reported as left', async () => {
    const { scene, installation, ids } = await readyScene();
    const end = keepOnline(scene, ids);
    installation.remove();
    await scene.steps(60);
    expect(installation.secrets()).toHaveLength(2);
    end();
    for (const id of ids) scene.api.changeDevice(id, { lastSeenMs: scene.now().getTime() });
    await scene.until(() => expectRemoved(scene, installation));
    expect(reported(installation, 'DeviceLeft')).toEqual([]);
  });
});
