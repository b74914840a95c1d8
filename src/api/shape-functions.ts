/** What generated shape functions call: copies that keep what is of a wrong type for the structure to refuse. */
export { isRecord } from './rule-functions.ts';
import { isRecord } from './rule-functions.ts';

/** A copy of a list; `copy` is absent where its items need none. */
export function copyList(value: unknown, copy: ((item: unknown) => unknown) | undefined): unknown {
  if (!Array.isArray(value)) return value;
  return copy ? value.map(item => copy(item)) : value.slice();
}

/** A copy of a map without its nulls, also of one with a key named __proto__. */
export function copyMap(value: unknown, copy: ((item: unknown) => unknown) | undefined): unknown {
  if (!isRecord(value)) return value;
  const out: Record<string, unknown> = { ...value };
  for (const key of Object.keys(out)) {
    if (out[key] === null) Reflect.deleteProperty(out, key);
    else if (copy) Object.defineProperty(out, key, { value: copy(out[key]) });
  }
  return out;
}
