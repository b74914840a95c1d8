/** What generated validators call. First the CEL functions that JavaScript does not have: a rule that throws fails. */
import { durationNs } from '../duration.ts';
import { familyOf, isAddressOrRange } from '../ip.ts';
import { isRecord } from '../json.ts';
import type { StructureError } from './validator.ts';

export { containsIP, parseCidr as cidr } from '../ip.ts';
export { isRecord } from '../json.ts';

/**
 * A rule used a field that is not there, which CEL calls an error.
 * @public called by generated rules that use a field without has()
 */
export function absent(field: string): never {
  throw new TypeError(`no such key: ${field}`);
}

/** Whether a rule holds; one that cannot be evaluated does not. */
export function holds<T>(rule: (self: T) => boolean, self: T): boolean {
  try {
    return rule(self);
  } catch {
    return false;
  }
}

/**
 * CEL's || where the left side may fail: a failure counts only if the right side does not decide.
 * @public called by generated rules
 */
export function either(left: () => boolean, right: () => boolean): boolean {
  try {
    if (left()) return true;
  } catch (failure) {
    if (right()) return true;
    throw failure;
  }
  return right();
}

/**
 * CEL's && where the left side may fail: a failure counts only if the right side does not decide.
 * @public called by generated rules
 */
export function both(left: () => boolean, right: () => boolean): boolean {
  try {
    if (!left()) return false;
  } catch (failure) {
    if (!right()) return false;
    throw failure;
  }
  return right();
}

/**
 * CEL's all() where the condition may fail: a failure counts only if no item decides.
 * @public called by generated rules
 */
export function every<T>(items: readonly T[], condition: (item: T) => boolean): boolean {
  let failure: Error | undefined;
  for (const item of items) {
    try {
      if (!condition(item)) return false;
    } catch (error) {
      failure ??= error instanceof Error ? error : new Error(String(error));
    }
  }
  if (failure) throw failure;
  return true;
}

/**
 * CEL's exists() where the condition may fail: a failure counts only if no item decides.
 * @public called by generated rules
 */
export function some<T>(items: readonly T[], condition: (item: T) => boolean): boolean {
  return !every(items, item => !condition(item));
}

/** CEL's size() of a text. */
export function codePoints(text: string): number {
  let count = text.length;
  for (let index = 0; index < text.length - 1; index++) {
    if (isHighSurrogate(text.charCodeAt(index)) && isLowSurrogate(text.charCodeAt(index + 1))) count--;
  }
  return count;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** CEL's duration(), in nanoseconds, which can be compared. */
export function duration(text: string): bigint {
  const ns = durationNs(text);
  if (ns === undefined) throw new TypeError(`${text} is not a duration`);
  return ns;
}

/** The API server's isIP(). */
export function isIP(text: string): boolean {
  return familyOf(text) !== undefined;
}

/** The API server's isCIDR(). */
export function isCIDR(text: string): boolean {
  return familyOf(text) === undefined && isAddressOrRange(text);
}

/** CEL's sets.intersects(). */
export function intersects(left: readonly unknown[], right: readonly unknown[]): boolean {
  const found = new Set(left);
  return right.some(item => found.has(item));
}

// What structure checks call.

/** The errors so far and one more. */
export function withError(errors: StructureError[] | null, error: StructureError): StructureError[] {
  if (errors === null) return [error];
  errors.push(error);
  return errors;
}

/** A repeated item of a list, and the first one with the same key. */
export type Duplicate = { readonly index: number; readonly first: number };

/** The items whose key came before; without keys, those that came before themselves. Each key is reported once. */
export function duplicates(items: readonly unknown[], keys: readonly string[]): readonly Duplicate[] {
  if (items.length < 2) return [];
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

/** Equal for items with the same key; an item that lacks a key field equals no other. */
function keyOf(item: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0) return item;
  if (!isRecord(item) || keys.some(key => item[key] === undefined)) return Symbol('no key');
  const [only = ''] = keys;
  if (keys.length === 1) return item[only];
  return JSON.stringify(keys.map(key => item[key]));
}

const TIME =
  /^\d{4}-\d{2}-\d{2}[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[-+](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Whether a text is a time as RFC 3339 writes it, on a day that exists. */
export function isTime(text: string): boolean {
  if (!TIME.test(text)) return false;
  const [year, month, day] = [text.slice(0, 4), text.slice(5, 7), text.slice(8, 10)];
  const date = new Date(Date.UTC(2000, Number(month) - 1, Number(day)));
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}

// What shape functions call. A value of a wrong type is copied as it is, for the structure check to refuse; a list or map
// that is too long is cut one item past its limit, which is enough to refuse it.

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
