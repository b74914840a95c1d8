import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../../lab/control-api/random.ts';
import { DISTURBANCES } from '../../../support/controllers/faults/calls.ts';
import { expectRemoved, startPoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

/** What users, admins, clusters and networks do to a pool, in an order that follows from a seed. */
async function disturbPool(scene: PoolScene, seed: number): Promise<number> {
  const installation = scene.install();
  const { kubelet } = installation;
  const { between } = seededRandom(seed);
  const pick = <T>(list: readonly T[]): T | undefined => list[between(0, Math.max(0, list.length - 1))];
  let replicas = 2;
  let endOutage: () => void = () => undefined;
  const put = () => {
    if (installation.get()?.metadata.deletionTimestamp !== undefined) return;
    const image = `tailscale/tailscale:v${between(1, 2)}`;
    installation.put({ pool: { replicas, image } });
  };
  const actions: readonly (() => void | Promise<void>)[] = [
    put,
    () => {
      replicas = between(1, 3);
      put();
    },
    () => {
      if (between(0, 2) === 0) installation.remove();
    },
    () => kubelet.delete(pick(kubelet.names()) ?? ''),
    () => kubelet.kill(pick(kubelet.names()) ?? ''),
    () => kubelet.holdImages(),
    () => kubelet.releaseImages(),
    () => scene.api.removeDevice(pick(scene.joined())?.nodeId ?? ''),
    () => {
      const nodeId = pick(scene.joined())?.nodeId;
      if (nodeId === undefined) return;
      scene.api.changeDevice(nodeId, { expiresMs: scene.now().getTime(), keyExpiryDisabled: false });
    },
    () => scene.api.revoke(pick(joinKeysOf(scene)) ?? ''),
    () => {
      endOutage();
      endOutage = scene.api.fail({ fault: { is: 'reset', when: 'before' } });
    },
    () => endOutage(),
    () => installation.restart(),
    ...[6, 20].map(most => () => {
      installation.disturb({ at: between(1, most), is: pick(DISTURBANCES) ?? 'fails' });
    }),
  ];
  put();
  for (let times = 0; times < 40; times++) {
    await pick(actions)?.();
    await scene.steps(between(0, 7));
  }
  endOutage();
  kubelet.releaseImages();
  return replicas;
}

function joinKeysOf({ api }: PoolScene): readonly string[] {
  return api.state.keys.all().flatMap(({ keyType, id }) => (keyType === 'auth' ? [id] : []));
}

describe('a pool after anything that may happen to it', () => {
  it.each([
    [1, 'vendor'],
    [2, 'headscale'],
    [3, 'vendor'],
    [4, 'headscale'],
    [5, 'headscale'],
  ] as const)('becomes ready, and can be removed: seed %i, %s', async (seed, dialect) => {
    const scene = await startPoolScene({ dialect });
    try {
      const replicas = await disturbPool(scene, seed);
      const [installation] = scene.installations;
      if (installation?.get()?.metadata.deletionTimestamp !== undefined) {
        await scene.until(() => expect(installation.get()).toBeUndefined());
      }
      installation?.put({ pool: { replicas } });
      await scene.until(() => {
        expect(installation?.condition('PoolReady')).toMatchObject({ status: 'True' });
        expect(installation?.status().pool).toMatchObject({ ready: replicas });
      });
      installation?.remove();
      await scene.until(() => installation && expectRemoved(scene, installation));
      expect(scene.joined()).toEqual([]);
    } finally {
      await scene.close();
    }
  });
});
