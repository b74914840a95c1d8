import { fieldsIn, isRecord } from '../api/json.ts';
import type { Fields } from '../api/json.ts';
/** The last strings of many objects, such as messages, times and names: equal ones take memory once. */
export class RecentStrings {
  readonly #strings = new Map<string, string>();

  /** The same text, from an earlier object if one had it. */
  share(text: string): string {
    if (text.length > MAX_LENGTH) return text;
    const known = this.#strings.get(text);
    if (known !== undefined) return known;
    if (this.#strings.size === MAX_STRINGS) this.#strings.clear();
    this.#strings.set(text, text);
    return text;
  }
}

const MAX_STRINGS = 4096;
const MAX_LENGTH = 1024;

/**
 * A frozen copy of a JSON value that shares its equal parts with an earlier frozen value, and is that value if all is
 * equal. So unchanged parts stay identical, and repeated ones take memory once.
 */
export function shareStructure(before: unknown, value: unknown, strings: RecentStrings): unknown {
  if (value === before) return before;
  if (typeof value === 'string') return strings.share(value);
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value)
    ? shareList(before, value, strings)
    : shareRecord(before, value as Fields, strings);
}

/** Items of a list are often alike, so a new item shares with the one before it. */
function shareList(before: unknown, list: readonly unknown[], strings: RecentStrings): unknown {
  const old: readonly unknown[] = Array.isArray(before) ? before : [];
  const copy: unknown[] = [];
  let isSame = before === old && old.length === list.length;
  for (const item of list) {
    const index = copy.length;
    const shared = shareStructure(index < old.length ? old[index] : copy[index - 1], item, strings);
    isSame &&= shared === old[index];
    copy.push(shared);
  }
  return isSame ? old : Object.freeze(copy);
}

/** Fields are copied one by one: V8 11 gives each frozen object that was created by a spread its own hidden class. */
function shareRecord(before: unknown, fields: Fields, strings: RecentStrings): unknown {
  const old = isRecord(before) ? before : {};
  const copy: Record<string, unknown> = {};
  let isSame = old === before && fieldsIn(old) === fieldsIn(fields);
  for (const key in fields) {
    const had = Object.hasOwn(old, key);
    const value = shareStructure(had ? old[key] : undefined, fields[key], strings);
    if (key === '__proto__') Object.defineProperty(copy, key, { value, enumerable: true });
    else copy[key] = value;
    isSame &&= had && value === old[key];
  }
  return isSame ? old : Object.freeze(copy);
}
