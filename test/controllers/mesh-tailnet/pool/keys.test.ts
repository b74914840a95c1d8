import { expect, it, onTestFinished } from 'vitest';
import {
  expectReady,
  expectRemoved,
  startPoolScene,
} from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

const DIALECTS = ['vendor', 'headscale'] as const;

async function readyScene(dialect: (typeof DIALECTS)[number]) {
  const scene = await startPoolScene({ dialect });
  onTestFinished(() => scene.close());
  const installation = scene.install();
  installation.put();
  await scene.until(() => expectReady(scene, installation, 2));
  return { scene, installation };
}

/** The join keys that are not revoked, by their descriptions. */
function listed({ api }: PoolScene): readonly string[] {
  const keys = api.state.keys.all().filter(({ keyType, revokedMs }) => keyType === 'auth' && !revokedMs);
  return keys.map(({ description }) => description).toSorted();
}

it.each(DIALECTS)('a used key is deleted before the pod gets another one, at %s', async dialect => {
  const { scene, installation } = await readyScene(dialect);
  const before = listed(scene);
  expect(before).toHaveLength(2);
  const [device] = scene.joined();
  scene.api.removeDevice(device?.nodeId ?? '');
  await scene.until(() => expect(scene.api.countByRoute()).toMatchObject({ 'keys.create': 3 }));
  await scene.until(() => expectReady(scene, installation, 2));
  expect(listed(scene)).toEqual(before);
});

it.each(DIALECTS)('used keys are deleted once each, with the pool, at %s', async dialect => {
  const { scene, installation } = await readyScene(dialect);
  for (let cycle = 0; cycle < 3; cycle++) {
    installation.remove();
    await scene.until(() => expectRemoved(scene, installation));
    expect(listed(scene)).toEqual([]);
    installation.put();
    await scene.until(() => expectReady(scene, installation, 2));
  }
  expect(scene.api.countByRoute()).toMatchObject({ 'keys.create': 8, 'keys.delete': 6 });
  expect(installation.events.map(({ reason }) => reason)).not.toContain('JoinKeyRevoked');
});

it.each(DIALECTS)('keys of others stay, used or not, at %s', async dialect => {
  const { scene, installation } = await readyScene(dialect);
  const other = scene.install('0f0f0f0f');
  other.put();
  await scene.until(() => expect(other.condition('PoolReady')).toMatchObject({ status: 'True' }));
  installation.remove();
  await scene.until(() => expect(installation.get()).toBeUndefined());
  expect(listed(scene)).toEqual(['mesh-gateway 0f0f0f0f example 0', 'mesh-gateway 0f0f0f0f example 1']);
});
