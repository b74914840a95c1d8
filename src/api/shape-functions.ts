/**
 * What generated shape functions call: copies that keep what is of a wrong type for the structure to refuse. What is too
 * long is cut after one item too many: enough to be refused, without judging all the rest.
 */
export { isRecord } from './rule-functions.ts';
import { isRecord } from './rule-functions.ts';

type Copy = ((item: unknown) => unknown) | undefined;

/** A copy of a list; `copy` is absent where its items need none. */
export function copyList(value: unknown, most: number, copy: Copy): unknown {
  if (!Array.isArray(value)) return value;
  const items = value.slice(0, most + 1);
  return copy ? items.map(item => copy(item)) : items;
}

/** A copy of a map without its nulls, also of one with a key named __proto__. */
export function copyMap(value: unknown, most: number, copy: Copy): unknown {
  if (!isRecord(value)) return value;
  const out: Record<string, unknown> = { ...value };
  let count = 0;
  for (const key of Object.keys(out)) {
    if (out[key] === null || count > most) {
      Reflect.deleteProperty(out, key);
      continue;
    }
    count++;
    if (copy) Object.defineProperty(out, key, { value: copy(out[key]) });
  }
  return out;
}
