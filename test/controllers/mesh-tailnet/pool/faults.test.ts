import { describe, expect, it } from 'vitest';
import { DISTURBANCES, isRead } from '../../../support/controllers/faults/calls.ts';
import type { Disturbance } from '../../../support/controllers/faults/calls.ts';
import type { Installation } from '../../../support/controllers/mesh-tailnet/installation.ts';
import {
  expectReady,
  expectRemoved,
  startPoolScene,
} from '../../../support/controllers/mesh-tailnet/scene.ts';
import type { PoolScene } from '../../../support/controllers/mesh-tailnet/scene.ts';

type Scenario = {
  readonly before: (scene: PoolScene, installation: Installation) => Promise<void>;
  readonly run: (scene: PoolScene, installation: Installation) => Promise<void>;
};

const joins: Scenario = {
  before: () => Promise.resolve(),
  run: async (scene, installation) => {
    installation.put();
    await scene.until(() => expectReady(scene, installation, 2));
  },
};

const shrinks: Scenario = {
  before: joins.run,
  run: async (scene, installation) => {
    installation.put({ pool: { replicas: 1 } });
    await scene.until(() => expectReady(scene, installation, 1));
  },
};

const losesItsDevices: Scenario = {
  before: joins.run,
  run: async (scene, installation) => {
    const [expired, removed] = scene.joined().map(({ nodeId }) => nodeId);
    scene.api.changeDevice(expired ?? '', { expiresMs: scene.now().getTime(), keyExpiryDisabled: false });
    scene.api.removeDevice(removed ?? '');
    await scene.until(() => expect(installation.condition('PoolReady')).toMatchObject({ status: 'False' }));
    await scene.until(() => expectReady(scene, installation, 2));
  },
};

const isDeleted: Scenario = {
  before: joins.run,
  run: async (scene, installation) => {
    installation.remove();
    await scene.until(() => expectRemoved(scene, installation));
  },
};

const isDeletedWhileItJoins: Scenario = {
  before: async (scene, installation) => {
    installation.put();
    await scene.until(() => expect(scene.joined()).toHaveLength(2));
  },
  run: isDeleted.run,
};

/** It is deleted while no process runs. */
const crashesAndIsDeleted: Scenario = {
  before: joins.before,
  run: async (scene, installation) => {
    installation.beforeRestart = () => installation.remove();
    installation.put();
    await scene.until(() => expectRemoved(scene, installation));
  },
};

/** Runs a scenario in a scene of its own; returns the calls of it. */
async function runOnce({ before, run }: Scenario, disturbance?: Disturbance): Promise<readonly string[]> {
  const scene = await startPoolScene();
  try {
    const installation = scene.install();
    await before(scene, installation);
    const first = installation.calls().length;
    if (disturbance) installation.disturb(disturbance);
    await run(scene, installation);
    expect(installation.kubelet.rejected).toEqual([]);
    return installation.calls().slice(first);
  } finally {
    await scene.close();
  }
}

const CONTROL_WRITES = /^(token|keys\.create|keys\.delete|device\.delete)$/;

/**
 * The calls of a scenario that are disturbed: all that change something, and the first of those that read the same. What
 * happens at a later read is the same as at the end of the write before it.
 */
function disturbed(calls: readonly string[], is: Disturbance['is']): readonly number[] {
  const isDisturbed = (call: string, index: number) => {
    // A write to Kubernetes that fails ends the reconcile anyway.
    if (is === 'is the last to be carried out') return CONTROL_WRITES.test(call);
    return !isRead(call) || (is !== 'loses its response' && calls.indexOf(call) === index);
  };
  return calls.flatMap((call, index) => (isDisturbed(call, index) ? [index] : []));
}

/** Disturbs one call after another, each in a scene of its own; returns which runs failed, and how. */
async function failuresOf(
  calls: readonly string[],
  is: Disturbance['is'],
  scenario: Scenario,
): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const index of disturbed(calls, is)) {
    await runOnce(scenario, { at: index + 1, is }).catch((error: unknown) => {
      failures.push(`call ${index + 1} of ${calls.length} (${calls[index]}) ${is}: ${String(error)}`);
    });
  }
  return failures;
}

describe.each([
  ['joins', joins, DISTURBANCES],
  ['shrinks', shrinks, DISTURBANCES],
  ['loses its devices', losesItsDevices, ['loses its response', 'is followed by a crash']],
  ['is deleted', isDeleted, DISTURBANCES],
  ['is deleted while it joins', isDeletedWhileItJoins, ['fails', 'is followed by a crash']],
] as const)('a pool that %s', (_, scenario, disturbances) => {
  it.each(disturbances)('still succeeds if any one call %s', async is => {
    expect(await failuresOf(await runOnce(scenario), is, scenario)).toEqual([]);
  });
});

describe('a pool whose process ends while it joins', () => {
  it('leaves nothing behind where its MeshTailnet is deleted before another process starts', async () => {
    const calls = await runOnce(joins);
    expect(await failuresOf(calls, 'is followed by a crash', crashesAndIsDeleted)).toEqual([]);
  });
});
