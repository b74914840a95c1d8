import { afterEach, describe, expect, it } from 'vitest';
import { ENFORCED } from '../../../../src/controllers/mesh-tailnet/enforcement/condition.ts';
import type { PolicyEnforcement } from '../../../../src/controllers/mesh-tailnet/enforcement/enforcement.ts';
import { worstOf } from '../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';
import type { EnforcementReason } from '../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';
import { startScene } from '../../../support/control/scene.ts';
import type { Scene } from '../../../support/control/scene.ts';
import { eventually } from '../../../support/eventually.ts';

const UNENFORCED: readonly EnforcementReason[] = [
  ...(['NotEnforced', 'NotInstalled', 'NoMeshPod', 'NoExtensionServer'] as const),
  ...(['Unreachable', 'NotReported'] as const),
];

const scenes: Scene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

/** What the replicas have found, which a test changes. */
class Found implements Pick<PolicyEnforcement, 'finding' | 'subscribe'> {
  #reason: EnforcementReason = 'NotTried';
  readonly #listeners = new Set<() => void>();

  change(reason: EnforcementReason): void {
    this.#reason = reason;
    for (const listener of this.#listeners) listener();
  }

  finding() {
    return worstOf(new Map([['mesh-operator-1', this.#reason]]));
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

async function started(spec: Readonly<Record<string, unknown>> = {}) {
  const found = new Found();
  const scene = await startScene({ enforcement: found, spec });
  scenes.push(scene);
  const change = async (reason: EnforcementReason) => {
    found.change(reason);
    await eventually(async () => {
      await scene.clock.advance(0);
      expect(scene.condition(ENFORCED)?.reason).toBe(reason);
    });
    return scene.condition(ENFORCED);
  };
  return { ...scene, change, found };
}

describe('the condition NetworkPoliciesEnforced of a MeshTailnet', () => {
  it('follows at once what the replicas of the operator find', async () => {
    const { change, condition } = await started();
    expect(condition(ENFORCED)).toBeUndefined();
    expect(await change('NetworkPoliciesEnforced')).toMatchObject({ status: 'True' });
    expect(await change('NotEnforced')).toMatchObject({
      status: 'False',
      message: expect.stringMatching(
        /^mesh-operator-1 can connect to port 5005 .*use a network plugin that/,
      ) as string,
    });
    expect(await change('NotInstalled')).toMatchObject({ status: 'False' });
  });

  it('has a status and a message for each reason', async () => {
    const { change } = await started();
    for (const reason of UNENFORCED) {
      const { status = '', message = '' } = (await change(reason)) ?? {};
      expect(['False', 'Unknown']).toContain(status);
      expect(message).not.toBe('');
    }
  });

  it.each([
    ['Auto', 'the front of mesh pods (spec.pool.front) keeps other pods of the cluster from their proxy'],
    ['Off', 'every pod of the cluster that reaches a mesh pod may send traffic into the tailnet'],
  ])('names what protects mesh pods instead, with the front %s', async (front, text) => {
    const { change } = await started({ pool: { front } });
    expect((await change('NotEnforced'))?.message).toContain(text);
  });

  it('does not change Ready', async () => {
    const { change, condition } = await started();
    const before = condition('Ready');
    await change('NotEnforced');
    expect(condition('Ready')).toEqual(before);
  });

  it('stays as it was while an operator that has just started has not tried it', async () => {
    const { change, condition, found, interval } = await started();
    const before = await change('NotEnforced');
    found.change('NotTried');
    await interval();
    expect(condition(ENFORCED)).toEqual(before);
  });

  it('has an Event when it is found, and none while it is not known', async () => {
    const { change, events } = await started();
    await change('NoMeshPod');
    await change('NotEnforced');
    await change('NetworkPoliciesEnforced');
    const reasons = events.map(({ type, reason }) => `${type} ${reason}`);
    expect(reasons.slice(-2)).toEqual(['Warning NotEnforced', 'Normal NetworkPoliciesEnforced']);
    expect(reasons).not.toContain('Warning NoMeshPod');
  });

  it('is absent where others run the proxies', async () => {
    const { condition, found, interval } = await started({
      pool: { mode: 'External', addresses: ['127.0.0.1:1055'] },
    });
    found.change('NotEnforced');
    await interval();
    expect(condition(ENFORCED)).toBeUndefined();
  });
});
