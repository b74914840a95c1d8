import type { Fields } from '../../api/json.ts';
import type { Problem } from '../../api/problem.ts';
import { typedSteps } from '../../api/validation/fault.ts';
import { fieldsBeyond } from '../../api/validation/unknown-fields.ts';
import { validateWith } from '../../api/validation/validate.ts';
import type { Definition } from '../crds/definition.ts';
import { meanText, problemOfFault } from './validity.ts';

/** The CRD of a kind, if it is known. */
export type FindDefinition = (group: string, version: string, kind: string) => Definition | undefined;

/** What the API server would refuse of an object of another group, or drop, by the CRD of its kind. */
export function problemsByDefinition(object: Fields, find: FindDefinition): readonly Problem[] {
  const { apiVersion, kind } = object;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string') return [];
  const [group = '', version = ''] = apiVersion.split('/');
  const definition = find(group, version, kind);
  if (!definition) return [];
  const { validator, release } = definition;
  const verdict = validateWith(validator, object);
  const faults = verdict.valid ? [] : verdict.faults.map(fault => problemOfFault(object, fault));
  const unknown = fieldsBeyond(validator.outline, object).map(({ steps, meant }) => ({
    reason: 'UnknownField' as const,
    at: typedSteps(object, steps),
    text: `is not a field of ${kind} in ${release}, whose CRDs let the API server drop it${meanText(meant)}`,
  }));
  return [...faults, ...unknown];
}
