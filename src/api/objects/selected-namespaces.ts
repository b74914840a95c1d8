import type { LabelRequirement, LabelSelector } from '../generated/types.ts';
import { decodeSelector } from './label-selector.ts';
import { field, oneOf, optionalFields, withFields } from './place.ts';
import type { FieldValue } from './place.ts';

/** The namespaces that an object of Gateway API accepts others from. */
export type SelectedNamespaces = {
  readonly from: 'All' | 'None' | 'Same' | 'Selector';
  /** Without one, or with an invalid one, `Selector` selects no namespace. */
  readonly selector?: LabelSelector;
};

/**
 * Decodes which namespaces are accepted. An invalid selector is no fault of the object: the API server stores it, and
 * Envoy Gateway refuses only the listener that has it.
 */
export function decodeNamespaces(place: FieldValue, missing: 'None' | 'Same'): SelectedNamespaces {
  const namespaces = optionalFields(place);
  const selector = validSelector(field(namespaces, 'selector'));
  return {
    from: oneOf(field(namespaces, 'from'), ['All', 'None', 'Same', 'Selector']) ?? missing,
    ...(selector && { selector }),
  };
}

function validSelector(place: FieldValue): LabelSelector | undefined {
  if (place.value === undefined) return undefined;
  const alone: FieldValue = { ...place, faults: [] };
  const selector = decodeSelector(withFields(alone));
  const isValid = selector.matchExpressions?.every(hasItsValues) ?? true;
  return isValid && alone.faults.length === 0 ? selector : undefined;
}

function hasItsValues({ operator, values = [] }: LabelRequirement): boolean {
  return (operator === 'In' || operator === 'NotIn') === values.length > 0;
}
