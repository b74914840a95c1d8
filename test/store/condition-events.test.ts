import { describe, expect, it } from 'vitest';
import type { Condition, Kinds } from '../../src/api/generated/types.ts';
import { conditionChanges, conditionEvent } from '../../src/store/condition-events.ts';
import { named } from '../support/declared.ts';
import { meshEndpoints } from '../support/objects.ts';

const ready = (fields: Partial<Condition> = {}): Condition => ({
  type: 'Ready',
  status: 'False',
  reason: 'NoEndpoints',
  message: 'empty',
  observedGeneration: 1,
  lastTransitionTime: '2026-01-01T00:00:00Z',
  ...fields,
});

describe('the changes of conditions', () => {
  it.each<[string, Condition | undefined, Condition, boolean]>([
    ['a condition is new', undefined, ready(), true],
    ['its status differs', ready({ status: 'Unknown' }), ready(), true],
    ['its reason differs', ready({ reason: 'Paused' }), ready(), true],
    ['its message alone differs', ready({ message: 'other' }), ready(), false],
    ['its times alone differ', ready({ lastTransitionTime: '2026-01-02T00:00:00Z' }), ready(), false],
  ])('where %s: with the one before', (_, before, now, isChange) => {
    const changes = conditionChanges(before && { conditions: [before] }, { conditions: [now] });
    expect(changes).toEqual(isChange ? [{ before, now }] : []);
  });

  it('are in the order of the conditions, without those that were removed', () => {
    const [one, other] = [ready(), ready({ type: 'Programmed' })];
    const changes = conditionChanges({ conditions: [ready({ type: 'Old' })] }, { conditions: [other, one] });
    expect(changes.map(({ now }) => now.type)).toEqual(['Programmed', 'Ready']);
    expect(conditionChanges(undefined, {})).toEqual([]);
  });
});

describe('the Event about a condition', () => {
  it('has its reason, and its message as the note', () => {
    const object = named(meshEndpoints(), 'default/web') as Kinds['MeshEndpoints'];
    const event = conditionEvent(object, ready(), { type: 'Warning', action: 'Reconcile' });
    expect(event).toMatchObject({
      type: 'Warning',
      reason: 'NoEndpoints',
      action: 'Reconcile',
      note: 'empty',
      regarding: { kind: 'MeshEndpoints', namespace: 'default', name: 'web' },
    });
  });
});
