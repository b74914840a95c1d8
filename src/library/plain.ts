import type { Fields } from '../api/json.ts';
import type { Fault } from '../api/validation/fault.ts';
import { isRecord } from '../api/json.ts';

/** A value to copy, with its path and the values around it. */
type PlainValue = {
  readonly value: unknown;
  readonly steps: readonly string[];
  readonly path: string;
  readonly around: readonly unknown[];
};

/** Returns what is copied in place of a record, and may report a fault of it. */
export type Visit = (record: Fields, refuse: (message: string) => void) => Fields;

const MAX_LEVELS = 64;
const MAX_FAULTS = 100;

/**
 * A deeply frozen copy of plain data, without undefined and null, as in YAML and JSON. Anything else, such as a function,
 * a class instance or NaN, is a fault.
 */
export function frozenCopy(value: unknown, faults: Fault[], visit: Visit = record => record): unknown {
  return copy({ value, steps: [], path: '', around: [] }, faults, visit);
}

function copy(place: PlainValue, faults: Fault[], visit: Visit): unknown {
  const { value } = place;
  const refuse = (message: string) => {
    if (faults.length < MAX_FAULTS) faults.push({ path: place.path, steps: place.steps, message });
  };
  const complaint = complaintOf(place);
  if (complaint !== undefined) refuse(complaint);
  else if (Array.isArray(value)) {
    return Object.freeze(Array.from(value, (_, index) => copy(item(place, index), faults, visit)));
  } else if (isPlain(value)) {
    const entries = Object.entries(visit(value, refuse))
      .filter(([, inner]) => inner !== undefined && inner !== null)
      .map(([name, inner]) => [name, copy(field(place, name, inner), faults, visit)] as const);
    return Object.freeze(Object.fromEntries(entries));
  }
  return value;
}

/** The fault of a value itself, regardless of its fields. */
function complaintOf({ value, around }: PlainValue): string | undefined {
  if (typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return undefined;
  if (around.includes(value)) return 'contains itself: use plain data';
  if (around.length >= MAX_LEVELS) return 'is nested too deeply';
  return Array.isArray(value) || isPlain(value) ? undefined : `is ${described(value)}: use plain data`;
}

function item(place: PlainValue, index: number): PlainValue {
  const list = place.value as readonly unknown[];
  return {
    value: list[index],
    steps: [...place.steps, String(index)],
    path: `${place.path}[${index}]`,
    around: [...place.around, list],
  };
}

function field(place: PlainValue, name: string, value: unknown): PlainValue {
  const isWord = /^[A-Za-z0-9_-]{1,64}$/.test(name);
  const step = isWord ? `${place.path === '' ? '' : '.'}${name}` : `[${JSON.stringify(name.slice(0, 64))}]`;
  const { steps, path, around } = place;
  return { value, steps: [...steps, name], path: path + step, around: [...around, place.value] };
}

/** Also for objects of another realm, such as those of some test runners. */
function isPlain(value: unknown): value is Fields {
  if (!isRecord(value)) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function described(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'number') return String(value);
  if (!isRecord(value)) return `a ${typeof value}`;
  const { constructor } = value;
  return typeof constructor === 'function' && constructor.name !== '' ? `a ${constructor.name}` : 'an object';
}
