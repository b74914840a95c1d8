import { isEqual } from '../api/equal.ts';

/** So many are named. */
const MOST = 10;

/**
 * The fields of an object that its next version lacks. Envoy Gateway merges what it reads from files into what it has:
 * what is in lists it replaces, but such a field it keeps.
 */
export function lostFields(before: object, after: object): readonly string[] {
  return lostIn(before, after, '').slice(0, MOST);
}

function lostIn(before: unknown, after: unknown, path: string): readonly string[] {
  if (!isMap(before) || isEqual(before, after)) return [];
  if (!isMap(after)) return [];
  return Object.entries(before).flatMap(([name, value]) => {
    const inner = path === '' ? name : `${path}.${name}`;
    return Object.hasOwn(after, name) ? lostIn(value, after[name], inner) : [inner];
  });
}

/** Whether something is a map, such as an object of JSON. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
