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
  if (!isRecord(item) || keys.some(key => item[key] === undefined)) return Symbol('no key');
  const [only = ''] = keys;
  if (keys.length === 1) return item[only];
  return JSON.stringify(keys.map(key => item[key]));
}

const TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[-+]([01]\d|2[0-3]):[0-5]\d)$/;

/** Whether a text is a time as RFC 3339 writes it, on a day that exists. */
export function isTime(text: string): boolean {
  const [, year, month, day] = TIME.exec(text) ?? [];
  if (year === undefined) return false;
  const date = new Date(Date.UTC(2000, Number(month) - 1, Number(day)));
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}
