/** What generated structure checks call. */
export { codePoints } from './rule-functions.ts';
import { isRecord } from './rule-functions.ts';

/** A repeated item of a list, and the first one with the same key. */
export type Duplicate = { readonly index: number; readonly first: number };

/** The items whose key came before; without keys, those that came before themselves. Each key is told once. */
export function duplicates(items: readonly unknown[], keys: readonly string[]): readonly Duplicate[] {
  const firsts = new Map<unknown, number>();
  const found = new Map<unknown, Duplicate>();
  for (let index = 0; index < items.length; index++) {
    const key = keyOf(items[index], keys);
    const first = firsts.get(key);
    if (first === undefined) firsts.set(key, index);
    else if (!found.has(key)) found.set(key, { index, first });
  }
  return [...found.values()];
}

/** Something that is the same for items with the same key; an item that lacks it is never the same as another. */
function keyOf(item: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0) return item;
  if (!isRecord(item)) return Symbol('not an object');
  const [only = ''] = keys;
  if (keys.length === 1) return item[only] ?? Symbol('no key');
  return JSON.stringify(keys.map(key => item[key]));
}
