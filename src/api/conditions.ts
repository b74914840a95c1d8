import { inSeconds } from './clock.ts';
import type { Condition } from './generated/types.ts';

/** A condition as a controller computes it, without the fields that depend on earlier ones. */
export type ConditionUpdate = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** The conditions of a status: each keeps the time of its last transition while its status is the same. */
export function conditionsOf(
  updates: readonly ConditionUpdate[],
  before: readonly Condition[] | undefined,
  observed: { readonly generation: number | undefined; readonly now: Date },
): readonly Condition[] {
  return updates.map(update => {
    const known = findCondition(before, update.type);
    const lastTransitionTime =
      known?.status === update.status ? known.lastTransitionTime : inSeconds(observed.now);
    return { ...update, observedGeneration: observed.generation ?? 0, lastTransitionTime };
  });
}

/** The condition of a type, if there is one. */
export function findCondition(
  conditions: readonly Condition[] | undefined,
  type: string,
): Condition | undefined {
  return conditions?.find(condition => condition.type === type);
}
