import { hintForSpelling, hintForType } from '../validation/explain.ts';
import type { Fault } from '../validation/fault.ts';
import { isRecord } from '../json.ts';
import { copyMap } from '../validation/validator-functions.ts';

/** A value in an object that is being decoded, its path, and the faults of that object so far. */
export type FieldValue = {
  readonly value: unknown;
  readonly step: string | number;
  readonly parent?: FieldValue;
  readonly faults: Fault[];
};

/** How many faults of one object are reported. */
const MAX_FAULTS = 100;

/** The place of a whole object, without faults. */
export function wholeObject(value: unknown): FieldValue {
  return { value, step: '', faults: [] };
}

/** A field, with an undefined value if it is missing or null. Faults inside a value without fields are not reported. */
export function field(parent: FieldValue, step: string): FieldValue {
  if (!isRecord(parent.value)) return { value: undefined, step, parent, faults: [] };
  const value = Object.hasOwn(parent.value, step) ? (parent.value[step] ?? undefined) : undefined;
  return { value, step, parent, faults: parent.faults };
}

/** The items of a list; none if it is missing, or is not a list, which is a fault. */
export function items(parent: FieldValue): readonly FieldValue[] {
  if (parent.value === undefined) return [];
  if (!Array.isArray(parent.value)) {
    refuse(parent, 'is not a list');
    return [];
  }
  return parent.value.map((value: unknown, step) => ({ value, step, parent, faults: parent.faults }));
}

/** The same place; adds a fault if it is not an object. */
export function withFields(place: FieldValue): FieldValue {
  if (!isRecord(place.value))
    refuse(place, place.value === undefined ? 'is required' : 'is not an object with fields');
  return place;
}

/** The same place; adds a fault if it is neither missing nor an object. */
export function optionalFields(place: FieldValue): FieldValue {
  return place.value === undefined ? place : withFields(place);
}

/** Adds a fault at a place. */
export function refuse(place: FieldValue, message: string): void {
  if (place.faults.length < MAX_FAULTS)
    place.faults.push({ path: pathOf(place), steps: stepsOf(place), message });
}

function stepsOf({ step, parent }: FieldValue): readonly string[] {
  return parent ? [...stepsOf(parent), String(step)] : [];
}

function pathOf({ step, parent }: FieldValue): string {
  if (!parent) return '';
  if (typeof step === 'number') return `${pathOf(parent)}[${step}]`;
  return parent.parent ? `${pathOf(parent)}.${step}` : step;
}

/** The valid form of a text; `is` describes it in messages. */
type Form = { readonly most: number; readonly pattern: RegExp; readonly is: string };

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DOMAIN = `${LABEL}(\\.${LABEL})*`;

function form(most: number, pattern: string, is: string): Form {
  return { most, pattern: new RegExp(`^(?:${pattern})$`), is };
}

/** The forms of texts in Kubernetes and Gateway API. */
export const forms = {
  any: form(Infinity, '[^]*', 'a text'),
  filled: form(253, '[^]+', 'a text of 1 to 253 characters'),
  label: form(63, LABEL, 'a name of lower-case letters, digits and -, at most 63'),
  domain: form(253, DOMAIN, 'a name of lower-case letters, digits, - and ., at most 253'),
  group: form(253, `(${DOMAIN})?`, 'an API group'),
  kind: form(63, '[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?', 'the name of a kind'),
  hostname: form(253, `(\\*\\.)?${DOMAIN}`, 'a host name, perhaps with *. before it'),
} as const;

/** An optional text. */
export function optionalText(place: FieldValue, { most, pattern, is }: Form): string | undefined {
  const { value } = place;
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.length <= most && pattern.test(value)) return value;
  refuse(place, `is not ${is}${hintForType(value, { is: 'text', pattern: pattern.source })}`);
  return undefined;
}

/** A required text. */
export function text(place: FieldValue, form: Form): string {
  if (place.value === undefined) refuse(place, `is required: give ${form.is}`);
  return optionalText(place, form) ?? '';
}

/** An optional text of a closed list. */
export function oneOf<T extends string>(place: FieldValue, values: readonly T[]): T | undefined {
  const found = values.find(value => value === place.value);
  if (found === undefined && place.value !== undefined)
    refuse(place, `is not one of ${values.join(', ')}${hintForSpelling(place.value, values)}`);
  return found;
}

/** An optional whole number. */
export function optionalInteger(place: FieldValue, least: number, most: number): number | undefined {
  const { value } = place;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  refuse(place, `is not a whole number from ${least} to ${most}${hintForType(value, { is: 'integer' })}`);
  return undefined;
}

/** An optional port. */
export function optionalPort(place: FieldValue): number | undefined {
  return optionalInteger(place, 1, 65_535);
}

/** A required port. */
export function port(place: FieldValue): number {
  if (place.value === undefined) refuse(place, 'is required: give a port');
  return optionalPort(place) ?? 0;
}

/** An optional map of texts, such as labels. */
export function optionalTexts(place: FieldValue): Readonly<Record<string, string>> | undefined {
  const { value } = place;
  if (value === undefined) return undefined;
  if (isRecord(value) && Object.values(value).every(isTextOrNull)) {
    return copyMap(value, Infinity, undefined) as Readonly<Record<string, string>>;
  }
  refuse(place, 'is not a map of names to texts');
  return undefined;
}

function isTextOrNull(value: unknown): boolean {
  return typeof value === 'string' || value === null;
}

/** The fields that are not undefined. */
export function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const found: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const name of Object.keys(fields) as (keyof T)[]) {
    const value = fields[name];
    if (value !== undefined) found[name] = value as Exclude<T[typeof name], undefined>;
  }
  return found;
}
