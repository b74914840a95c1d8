/**
 * A frozen copy of a JSON value that shares with a frozen one before it all that is equal, and is the one before it if
 * all of it is equal. So what did not change is the same value still, and what is said often takes its memory once.
 */
export function share(before: unknown, value: unknown): unknown {
  if (value === before) return before;
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? shareList(before, value) : shareRecord(before, value as Fields);
}

type Fields = Readonly<Record<string, unknown>>;

/** The items of a list are often alike: a new one shares with its neighbour. */
function shareList(before: unknown, list: readonly unknown[]): unknown {
  const old: readonly unknown[] = Array.isArray(before) ? before : [];
  const copy: unknown[] = [];
  for (const [at, item] of list.entries()) copy.push(share(at < old.length ? old[at] : copy[at - 1], item));
  const isSame = before === old && old.length === copy.length && copy.every((item, at) => item === old[at]);
  return isSame ? old : Object.freeze(copy);
}

/** Fields are copied one by one: V8 11 gives each frozen object that began as a spread a layout of its own. */
function shareRecord(before: unknown, fields: Fields): unknown {
  const isRecord = typeof before === 'object' && before !== null && !Array.isArray(before);
  const old: Fields = isRecord ? (before as Fields) : {};
  const keys = Object.keys(fields);
  const copy: Record<string, unknown> = {};
  let isSame = isRecord && Object.keys(old).length === keys.length;
  for (const key of keys) {
    const had = Object.hasOwn(old, key);
    const value = share(had ? old[key] : undefined, fields[key]);
    if (key === '__proto__') Object.defineProperty(copy, key, { value, enumerable: true });
    else copy[key] = value;
    isSame &&= had && value === old[key];
  }
  return isSame ? old : Object.freeze(copy);
}
