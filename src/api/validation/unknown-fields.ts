import type { KindName } from '../generated/kinds.ts';
import { validators } from '../generated/validators.ts';
import { nearest } from './nearest.ts';
import type { Outline } from './validator.ts';
import { formatPath } from './fault.ts';
import type { Steps } from './fault.ts';
import { isRecord } from '../json.ts';

/** A field that the API server drops, and the field that was probably meant. */
export type UnknownField = { readonly path: string; readonly steps: Steps; readonly meant?: string };

/** How many are reported; an object with more is of another kind. */
const MAX_FIELDS = 100;

/** The fields of an object that its kind does not have. */
export function unknownFields(kind: KindName, value: unknown): readonly UnknownField[] {
  return fieldsBeyond(validators[kind].outline, value);
}

/** The fields of a value that its outline does not have. */
export function fieldsBeyond(outline: Outline, value: unknown): readonly UnknownField[] {
  return search(value, outline, []).map(({ steps, siblings }) => {
    const meant = nearest(steps.at(-1) ?? '', siblings);
    return { path: formatPath(outline, steps), steps, ...(meant === undefined ? {} : { meant }) };
  });
}

type Found = { readonly steps: Steps; readonly siblings: readonly string[] };

function search(value: unknown, outline: Outline, steps: Steps): readonly Found[] {
  const { items, values } = outline;
  if (items && Array.isArray(value)) return searchEach(value.entries(), () => items, steps);
  if (!isRecord(value) || !(values ?? outline.fields)) return [];
  if (values) return searchEach(Object.entries(value), () => values, steps);
  return searchFields(value, outline, steps);
}

function searchFields(
  value: Readonly<Record<string, unknown>>,
  outline: Outline,
  steps: Steps,
): readonly Found[] {
  const fields = outline.fields ?? {};
  const siblings = Object.keys(fields).filter(name => value[name] === undefined);
  const unknown = (outline.isOpen ? [] : Object.keys(value))
    .filter(name => !Object.hasOwn(fields, name) && !outline.ignored?.includes(name))
    .map(name => ({ steps: [...steps, name], siblings }));
  const known = Object.entries(value).filter(([name]) => Object.hasOwn(fields, name));
  return [...unknown, ...searchEach(known, name => fields[name], steps)].slice(0, MAX_FIELDS);
}

function searchEach(
  entries: Iterable<readonly [string | number, unknown]>,
  outlineOf: (key: string) => Outline | undefined,
  steps: Steps,
): readonly Found[] {
  const found: Found[] = [];
  for (const [key, item] of entries) {
    const outline = outlineOf(String(key));
    if (outline && found.length < MAX_FIELDS) found.push(...search(item, outline, [...steps, String(key)]));
  }
  return found.slice(0, MAX_FIELDS);
}
