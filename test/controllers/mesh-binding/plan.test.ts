import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { MANAGED_BY } from '../../../src/api/names.ts';
import { validate } from '../../../src/api/validation/validate.ts';
import { APPLY_AFTER_MS, REPEAT_AFTER_MS, plan } from '../../../src/controllers/mesh-binding/plan.ts';
import type { Input } from '../../../src/controllers/mesh-binding/plan.ts';
import { named } from '../../support/declared.ts';
import { meshBinding } from '../../support/objects.ts';

const gateway = { kind: 'Gateway', namespace: 'default', name: 'public' } as const;

/** A MeshBinding of the Gateway as we write it, with some of its spec and metadata replaced. */
function bindingWith(spec: object = {}, metadata: object = { labels: MANAGED_BY }): Kinds['MeshBinding'] {
  const object = named(meshBinding({ revision: 'aaaaaaaa', attempt: 0, ...spec }), 'default/public', {
    ...metadata,
  });
  return object as Kinds['MeshBinding'];
}

type Case = {
  readonly it: string;
  readonly given: Partial<Input>;
  readonly does: string;
};

/** The action as a line of text. */
function shown(state: Partial<Input>): string {
  const action = plan({
    gateway,
    revision: 'aaaaaaaa',
    settings: undefined,
    binding: undefined,
    unchangedForMs: 0,
    applyAfterMs: APPLY_AFTER_MS,
    hasDiffered: false,
    ...state,
  });
  switch (action.do) {
    case 'nothing':
      return 'nothing';
    case 'wait':
      return `wait ${action.ms}`;
    case 'remove':
      return `remove ${action.ref.namespace}/${action.ref.name}`;
    case 'apply': {
      const { revision, attempt } = action.object.spec as Kinds['MeshBinding']['spec'];
      return `apply ${revision} ${attempt}`;
    }
  }
}

const CASES: readonly Case[] = [
  { it: 'does nothing without a mesh route and a binding', given: { revision: undefined }, does: 'nothing' },
  { it: 'waits before the first binding', given: {}, does: `wait ${APPLY_AFTER_MS}` },
  {
    it: 'applies a binding for a mesh route',
    given: { unchangedForMs: APPLY_AFTER_MS },
    does: 'apply aaaaaaaa 0',
  },
  {
    it: 'removes the binding with the last mesh route',
    given: { revision: undefined, binding: bindingWith() },
    does: 'remove default/public',
  },
  {
    it: 'does not remove a binding without our labels',
    given: { revision: undefined, binding: bindingWith({}, { labels: { team: 'web' } }) },
    does: 'nothing',
  },
  {
    it: 'waits for the remaining time before another revision',
    given: { revision: 'bbbbbbbb', binding: bindingWith({ attempt: 1 }), unchangedForMs: 100 },
    does: `wait ${APPLY_AFTER_MS - 100}`,
  },
  {
    it: 'applies attempt 0 of another revision',
    given: { revision: 'bbbbbbbb', binding: bindingWith({ attempt: 1 }), unchangedForMs: 1e6 },
    does: 'apply bbbbbbbb 0',
  },
  { it: 'waits before attempt 1', given: { binding: bindingWith() }, does: `wait ${REPEAT_AFTER_MS}` },
  {
    it: 'waits for the remaining time only',
    given: { binding: bindingWith(), unchangedForMs: 1500 },
    does: 'wait 500',
  },
  {
    it: 'applies attempt 1 after the wait',
    given: { binding: bindingWith(), unchangedForMs: REPEAT_AFTER_MS },
    does: 'apply aaaaaaaa 1',
  },
  {
    it: 'does nothing after attempt 1',
    given: { binding: bindingWith({ attempt: 1 }), unchangedForMs: 1e6 },
    does: 'nothing',
  },
  {
    it: 'does nothing after a higher attempt',
    given: { binding: bindingWith({ attempt: 7 }), unchangedForMs: 1e6 },
    does: 'nothing',
  },
  {
    it: 'waits where the revision has differed meanwhile',
    given: { binding: bindingWith({ attempt: 1 }), hasDiffered: true },
    does: `wait ${REPEAT_AFTER_MS}`,
  },
  {
    it: 'applies the next attempt where the revision has differed meanwhile',
    given: { binding: bindingWith({ attempt: 1 }), hasDiffered: true, unchangedForMs: REPEAT_AFTER_MS },
    does: 'apply aaaaaaaa 2',
  },
  {
    it: 'reverts another target, and keeps the attempt',
    given: { binding: bindingWith({ attempt: 1, targetRefs: [] }) },
    does: 'apply aaaaaaaa 1',
  },
  {
    it: 'reverts settings',
    given: { binding: bindingWith({ attempt: 1, settings: { dataPath: { mode: 'Direct' } } }) },
    does: 'apply aaaaaaaa 1',
  },
  {
    it: 'keeps labels of others',
    given: { binding: bindingWith({ attempt: 1 }, { labels: { ...MANAGED_BY, team: 'web' } }) },
    does: 'nothing',
  },
  {
    it: 'restores our labels',
    given: { binding: bindingWith({ attempt: 1 }, { labels: { a: 'b' } }) },
    does: 'apply aaaaaaaa 1',
  },
];

describe('the plan for the MeshBinding of a Gateway', () => {
  it.each(CASES)('$it', ({ given, does }) => {
    expect(shown(given)).toBe(does);
  });

  it('applies a valid object, also for the longest name', () => {
    const name = `${'a'.repeat(60)}.`.repeat(4).concat('b'.repeat(9));
    const action = plan({
      gateway: { ...gateway, name },
      revision: 'a'.repeat(32),
      settings: { since: '2026-01-01T00:00:00Z', dataPath: { mode: 'Direct' } },
      binding: undefined,
      unchangedForMs: APPLY_AFTER_MS,
      applyAfterMs: APPLY_AFTER_MS,
      hasDiffered: false,
    });
    const object = action.do === 'apply' ? action.object : undefined;
    expect(name).toHaveLength(253);
    expect(validate('MeshBinding', object)).toMatchObject({ valid: true });
  });
});
