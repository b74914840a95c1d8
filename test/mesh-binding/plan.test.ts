import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../src/api/generated/types.ts';
import { MANAGED_BY } from '../../src/api/names.ts';
import { validate } from '../../src/api/validation/validate.ts';
import { REPEAT_AFTER_MS, plan } from '../../src/mesh-binding/plan.ts';
import type { State } from '../../src/mesh-binding/plan.ts';
import { named } from '../support/declared.ts';
import { meshBinding } from '../support/objects.ts';

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
  readonly given: Partial<State>;
  readonly does: string;
};

/** What is done, in one line. */
function shown(state: Partial<State>): string {
  const action = plan({ gateway, revision: 'aaaaaaaa', binding: undefined, unchangedForMs: 0, ...state });
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
  { it: 'nothing where there is neither route nor binding', given: { revision: undefined }, does: 'nothing' },
  { it: 'makes one where there is a route', given: {}, does: 'apply aaaaaaaa 0' },
  {
    it: 'removes it with the last route',
    given: { revision: undefined, binding: bindingWith() },
    does: 'remove default/public',
  },
  {
    it: 'leaves one alone that has not our label',
    given: { revision: undefined, binding: bindingWith({}, { labels: { team: 'web' } }) },
    does: 'nothing',
  },
  {
    it: 'begins anew with another revision',
    given: { revision: 'bbbbbbbb', binding: bindingWith({ attempt: 1 }), unchangedForMs: 1e6 },
    does: 'apply bbbbbbbb 0',
  },
  { it: 'waits after a change', given: { binding: bindingWith() }, does: `wait ${REPEAT_AFTER_MS}` },
  {
    it: 'waits for the remaining time only',
    given: { binding: bindingWith(), unchangedForMs: 1500 },
    does: 'wait 500',
  },
  {
    it: 'asks once more when the time is over',
    given: { binding: bindingWith(), unchangedForMs: REPEAT_AFTER_MS },
    does: 'apply aaaaaaaa 1',
  },
  {
    it: 'does nothing after it has asked once more',
    given: { binding: bindingWith({ attempt: 1 }), unchangedForMs: 1e6 },
    does: 'nothing',
  },
  {
    it: 'leaves a higher attempt alone',
    given: { binding: bindingWith({ attempt: 7 }), unchangedForMs: 1e6 },
    does: 'nothing',
  },
  {
    it: 'puts back another target, with the attempt that there is',
    given: { binding: bindingWith({ attempt: 1, targetRefs: [] }) },
    does: 'apply aaaaaaaa 1',
  },
  {
    it: 'puts back settings that nobody decided',
    given: { binding: bindingWith({ attempt: 1, settings: { dataPath: { mode: 'Direct' } } }) },
    does: 'apply aaaaaaaa 1',
  },
  {
    it: 'lets others label it',
    given: { binding: bindingWith({ attempt: 1 }, { labels: { ...MANAGED_BY, team: 'web' } }) },
    does: 'nothing',
  },
  {
    it: 'puts back labels',
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
      binding: undefined,
      unchangedForMs: 0,
    });
    const object = action.do === 'apply' ? action.object : undefined;
    expect(name).toHaveLength(253);
    expect(validate('MeshBinding', object)).toMatchObject({ valid: true });
  });
});
