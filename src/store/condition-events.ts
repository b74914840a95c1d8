import { findCondition } from '../api/conditions.ts';
import type { ConditionUpdate } from '../api/conditions.ts';
import type { Condition } from '../api/generated/types.ts';
import { regardingOf } from './resources.ts';
import type { ObjectEvent, OwnResource } from './resources.ts';

/** A condition with another status or reason than before. */
export type ConditionChange = {
  /** Undefined where the condition is new. */
  readonly before: Condition | undefined;
  readonly now: Condition;
};

type Conditions = { readonly conditions?: readonly Condition[] };

/** The conditions of a status that are new, or whose status or reason has changed; a changed message alone is no change. */
export function conditionChanges(
  before: Conditions | undefined,
  now: Conditions,
): readonly ConditionChange[] {
  const changes = (now.conditions ?? []).map(condition => ({
    before: findCondition(before?.conditions, condition.type),
    now: condition,
  }));
  return changes.filter(change => !isSame(change));
}

function isSame({ before, now }: ConditionChange): boolean {
  return before?.status === now.status && before.reason === now.reason;
}

/** The Event about a condition of an object, with the reason and message of the condition. */
export function conditionEvent(
  object: OwnResource,
  { reason, message }: Pick<ConditionUpdate, 'reason' | 'message'>,
  { type, action }: Pick<ObjectEvent, 'type' | 'action'>,
): ObjectEvent {
  return { regarding: regardingOf(object), type, reason, action, note: message };
}
