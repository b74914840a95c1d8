import type { Fault } from './fault.ts';
import { isRecord } from './rule-functions.ts';

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
