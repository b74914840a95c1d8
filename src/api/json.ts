/** A JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields. */
export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields of a value; none where it is no object. */
export function recordOf(value: unknown): Fields {
  return isRecord(value) ? value : {};
}

/** The JSON object that a text is; undefined if it is none. */
export function jsonObjectIn(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether two JSON values are equal; the order of fields does not matter. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && isEqualList(a, b);
  return isEqualRecord(a as Fields, b as Fields);
}

function isEqualList(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => isEqual(item, b[index]));
}

function isEqualRecord(a: Fields, b: Fields): boolean {
  let left = fieldsIn(b);
  for (const key in a) {
    if (left-- === 0 || !Object.hasOwn(b, key) || !isEqual(a[key], b[key])) return false;
  }
  return left === 0;
}

/** How many fields an object has, without a list of them. */
export function fieldsIn(fields: Fields): number {
  let count = 0;
  for (const _ in fields) count++;
  return count;
}

/** JSON in which the characters that a pattern matches are escaped; it parses to the same value. */
export function escapedJson(value: unknown, characters: RegExp, indent = 0): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value, undefined, indent).replace(characters, escaped);
}
