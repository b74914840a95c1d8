import { afterEach, describe, expect, it } from 'vitest';
import type { Installation } from '../../../support/controllers/mesh-tailnet/installation.ts';
import { expectReady, startPoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

const scenes: PoolScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

async function newScene(): Promise<PoolScene> {
  const scene = await startPoolScene();
  scenes.push(scene);
  return scene;
}

/** The notes of the Events about orphans, by their reason. */
function reported({ events }: Installation, reason: string): readonly string[] {
  return events.filter(event => event.reason === reason).map(({ note }) => note);
}

const devicesOf = (scene: PoolScene, { id }: Installation) =>
  scene.joined().filter(({ hostname }) => hostname.endsWith(`-${id}`));

function expectPool(installation: Installation): void {
  expect(installation.condition('PoolReady')).toMatchObject({ status: 'True' });
}

describe('orphaned devices', () => {
  it('of a namespace that was deleted are reported, and deleted later, by the operator that is installed again', async () => {
    const scene = await newScene();
    const installation = scene.install();
    installation.put();
    await scene.until(() => expectReady(scene, installation, 2));
    const before = scene.joined().map(({ nodeId }) => nodeId);
    await installation.reinstall();
    await scene.until(() => expect(installation.status().devices?.orphaned).toBe(2));
    expect(reported(installation, 'OrphanFound')).toHaveLength(2);
    expect(scene.joined().map(({ nodeId }) => nodeId)).toEqual(expect.arrayContaining(before));
    await scene.until(() => expectReady(scene, installation, 2));
    const deleted = reported(installation, 'OrphanDeleted').join('\n');
    for (const id of before) expect(deleted).toContain(`(${id})`);
    await scene.until(() =>
      expect(installation.status().devices).toMatchObject({ total: 2, managed: 2, orphaned: 0 }),
    );
  });

  it('of another installation are left alone', async () => {
    const scene = await newScene();
    const [ours, theirs] = [scene.install('a1b2c3d4'), scene.install('e5f6a7b8')];
    for (const installation of [ours, theirs]) installation.put();
    await scene.until(() => [ours, theirs].forEach(expectPool));
    const before = devicesOf(scene, theirs).map(({ nodeId }) => nodeId);
    // As after a failure of their cluster: their devices still belong to members.
    for (const id of before) scene.api.changeDevice(id, { lastSeenMs: scene.now().getTime() });
    await ours.reinstall();
    await scene.until(() => expect(reported(ours, 'OrphanDeleted')).toHaveLength(2));
    await scene.until(() => [ours, theirs].forEach(expectPool));
    expect(devicesOf(scene, theirs).map(({ nodeId }) => nodeId)).toEqual(before);
    expect(devicesOf(scene, ours)).toHaveLength(2);
    expect(theirs.events.map(({ reason }) => reason)).not.toContain('OrphanFound');
  });

  it('stay while they are online', async () => {
    const scene = await newScene();
    const installation = scene.install();
    installation.put();
    await scene.until(() => expectReady(scene, installation, 2));
    const { nodeId } = scene.api.addDevice({
      hostname: `meshd-old-0-${installation.id}`,
      tags: ['tag:mesh'],
    });
    await scene.steps(120);
    expect(installation.status().devices).toMatchObject({ total: 3, managed: 3, orphaned: 0 });
    scene.api.changeDevice(nodeId, { lastSeenMs: scene.now().getTime() });
    await scene.until(() =>
      expect(installation.status().devices).toMatchObject({ total: 2, managed: 2, orphaned: 0 }),
    );
    expect(reported(installation, 'OrphanDeleted')).toEqual([
      `deleted the device meshd-old-0-${installation.id} (${nodeId})`,
    ]);
  });
});
