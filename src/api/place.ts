import type { Fault } from './validation/fault.ts';
import { isRecord } from './json.ts';
import { copyMap } from './validation/validator-functions.ts';

/** A value inside an object that is being read, the way to it, and what was found wrong with that object so far. */
export type Place = {
  readonly value: unknown;
  readonly step: string | number;
  readonly parent?: Place;
  readonly faults: Fault[];
};

/** So many faults of one object are told. */
const MOST_FAULTS = 100;

/** The place of a whole object, of which nothing wrong is known yet. */
export function wholeObject(value: unknown): Place {
  return { value, step: '', faults: [] };
}

/** A field, without a value where it is not there or null. Of what has no fields, nothing more is found wrong inside. */
export function field(parent: Place, step: string): Place {
  if (!isRecord(parent.value)) return { value: undefined, step, parent, faults: [] };
  const value = Object.hasOwn(parent.value, step) ? (parent.value[step] ?? undefined) : undefined;
  return { value, step, parent, faults: parent.faults };
}

/** The items of a list; none where it is not there, or is no list, which is a fault. */
export function items(parent: Place): readonly Place[] {
  if (parent.value === undefined) return [];
  if (!Array.isArray(parent.value)) {
    refuse(parent, 'is not a list');
    return [];
  }
  return parent.value.map((value: unknown, step) => ({ value, step, parent, faults: parent.faults }));
}

/** The same place, of which it is a fault to have no fields. */
export function withFields(place: Place): Place {
  if (!isRecord(place.value))
    refuse(place, place.value === undefined ? 'is required' : 'is not an object with fields');
  return place;
}

/** Notes that something is wrong at a place. */
export function refuse(place: Place, message: string): void {
  if (place.faults.length < MOST_FAULTS)
    place.faults.push({ path: pathOf(place), steps: stepsOf(place), message });
}

function stepsOf({ step, parent }: Place): readonly string[] {
  return parent ? [...stepsOf(parent), String(step)] : [];
}

function pathOf({ step, parent }: Place): string {
  if (!parent) return '';
  if (typeof step === 'number') return `${pathOf(parent)}[${step}]`;
  return parent.parent ? `${pathOf(parent)}.${step}` : step;
}

/** What a text must be like; `is` says it in words. */
type Form = { readonly most: number; readonly pattern: RegExp; readonly is: string };

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const DOMAIN = `${LABEL}(\\.${LABEL})*`;

function form(most: number, pattern: string, is: string): Form {
  return { most, pattern: new RegExp(`^(?:${pattern})$`), is };
}

/** The forms that Kubernetes and Gateway API give to the texts that are read. */
export const forms = {
  any: form(Infinity, '[^]*', 'a text'),
  filled: form(253, '[^]+', 'a text of 1 to 253 characters'),
  label: form(63, LABEL, 'a name of lower-case letters, digits and -, at most 63'),
  domain: form(253, DOMAIN, 'a name of lower-case letters, digits, - and ., at most 253'),
  group: form(253, `(${DOMAIN})?`, 'an API group'),
  kind: form(63, '[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?', 'the name of a kind'),
  hostname: form(253, `(\\*\\.)?${DOMAIN}`, 'a host name, perhaps with *. before it'),
} as const;

/** A text that may be left out. */
export function optionalText(place: Place, { most, pattern, is }: Form): string | undefined {
  const { value } = place;
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.length <= most && pattern.test(value)) return value;
  refuse(place, `is not ${is}`);
  return undefined;
}

/** A text that must be there. */
export function text(place: Place, form: Form): string {
  if (place.value === undefined) refuse(place, `is required: give ${form.is}`);
  return optionalText(place, form) ?? '';
}

/** A whole number that may be left out. */
export function optionalInteger(place: Place, least: number, most: number): number | undefined {
  const { value } = place;
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  refuse(place, `is not a whole number from ${least} to ${most}`);
  return undefined;
}

/** A port that may be left out. */
export function optionalPort(place: Place): number | undefined {
  return optionalInteger(place, 1, 65_535);
}

/** A port that must be there. */
export function port(place: Place): number {
  if (place.value === undefined) refuse(place, 'is required: give a port');
  return optionalPort(place) ?? 0;
}

/** A map of texts, such as labels, that may be left out. */
export function optionalTexts(place: Place): Readonly<Record<string, string>> | undefined {
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

/** The fields that are there. */
export function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
