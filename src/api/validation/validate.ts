import { explainRule, explainStructure } from './explain.ts';
import type { Fault } from './fault.ts';
import type { KindName } from '../generated/kinds.ts';
import type { Kinds } from '../generated/types.ts';
import { validators } from '../generated/validators.ts';
import type { GeneratedValidator } from './validator.ts';

/** Either the object as it would be stored, or its faults. */
export type Verdict<T> =
  { readonly valid: true; readonly object: T } | { readonly valid: false; readonly faults: readonly Fault[] };

/**
 * Validates an object as the API server does with the CRDs installed, and returns it as it would be stored: without unknown
 * fields and nulls, with defaults. The value itself is not changed and may be any JSON. Of metadata only names, namespaces
 * and label values are validated.
 */
export function validate<K extends KindName>(kind: K, value: unknown): Verdict<Kinds[K]> {
  return validateWith(validators[kind], value);
}

/** How many faults are reported; the last one has the number of the others. */
const MAX_FAULTS = 100;

/** Validates any JSON by a generated validator, and returns it without unknown fields and nulls, with defaults. */
export function validateWith<T>(validator: GeneratedValidator, value: unknown): Verdict<T> {
  const { shape, structure, evaluate, rules, outline } = validator;
  const object = shape(value);
  const errors = structure(object) ? [] : (structure.errors ?? []);
  const failed: { readonly index: number; readonly path: string }[] = [];
  evaluate(object, (index, path) => failed.push({ index, path }));
  if (errors.length === 0 && failed.length === 0) return { valid: true, object: object as T };
  const faults = new Map<string, Fault>();
  for (const fault of errors.flatMap(error => explainStructure(error, object, outline)))
    if (!faults.has(fault.path)) faults.set(fault.path, fault);
  const structural = [...faults.keys()];
  for (const { index, path } of failed) {
    const rule = rules[index];
    if (!rule || structural.some(other => concerns(path, other))) continue;
    const fault = explainRule(rule, path, object, outline);
    faults.set(`${fault.path} ${rule.message}`, fault);
  }
  return { valid: false, faults: bounded([...faults.values()]) };
}

/** A failed rule is not reported where a structural fault is in or around its value, which may be its cause. */
function concerns(path: string, other: string): boolean {
  return isWithin(path, other) || isWithin(other, path);
}

function isWithin(inner: string, outer: string): boolean {
  if (!inner.startsWith(outer)) return false;
  const next = inner.charAt(outer.length);
  return outer === '' || next === '' || next === '.' || next === '[';
}

function bounded(faults: readonly Fault[]): readonly Fault[] {
  if (faults.length <= MAX_FAULTS) return faults;
  const rest = faults.length - MAX_FAULTS + 1;
  return [
    ...faults.slice(0, MAX_FAULTS - 1),
    { path: '', steps: [], message: `${rest} more faults are not listed` },
  ];
}
