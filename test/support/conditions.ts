import { isEqual } from '../../src/api/json.ts';
import type { Condition } from '../../src/api/generated/types.ts';

/** The longest texts that the schema allows. */
const [LONGEST_REASON, LONGEST_MESSAGE] = [1024, 32_768];

/** The condition of a type, where there is one. */
export function findCondition(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find(condition => condition.type === type);
}

/**
 * The same conditions with one replaced, or added at the end. The time of its last transition stays while its status
 * does; without a difference the same array is returned.
 */
export function withCondition(
  conditions: readonly Condition[],
  condition: Omit<Condition, 'lastTransitionTime'>,
  now: Date,
): readonly Condition[] {
  const old = findCondition(conditions, condition.type);
  const next: Condition = {
    ...condition,
    reason: bounded(condition.reason, LONGEST_REASON),
    message: bounded(condition.message, LONGEST_MESSAGE),
    lastTransitionTime: old?.status === condition.status ? old.lastTransitionTime : inSeconds(now),
  };
  if (!old) return [...conditions, next];
  return isEqual(old, next) ? conditions : conditions.map(each => (each === old ? next : each));
}

/**
 * Also without halves of surrogate pairs, which a server would replace, so that each comparison would find a
 * difference.
 */
function bounded(text: string, longest: number): string {
  const short = text.length <= longest ? text : `${text.slice(0, longest - 3)}...`;
  return short.replaceAll(/\p{Surrogate}/gu, '\u{FFFD}');
}

function inSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
