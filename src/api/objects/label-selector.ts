import type { LabelRequirement, LabelSelector } from '../generated/types.ts';
import { field, forms, items, oneOf, optionalTexts, present, text, withFields } from './place.ts';
import type { FieldValue } from './place.ts';

type Labels = Readonly<Record<string, string>>;

/** Decodes a label selector of Kubernetes. */
export function decodeSelector(place: FieldValue): LabelSelector {
  const matchLabels = optionalTexts(field(place, 'matchLabels'));
  const matchExpressions = items(field(place, 'matchExpressions')).map(decodeRequirement);
  return { ...present({ matchLabels }), matchExpressions };
}

function decodeRequirement(place: FieldValue): LabelRequirement {
  const requirement = withFields(place);
  return {
    key: text(field(requirement, 'key'), forms.filled),
    operator: oneOf(field(requirement, 'operator'), ['In', 'NotIn', 'Exists', 'DoesNotExist']) ?? 'In',
    values: items(field(requirement, 'values')).map(value => text(value, forms.any)),
  };
}

/** Whether a selector selects labels, as in Kubernetes: an empty one selects everything. */
export function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  const hasAll = Object.entries(matchLabels).every(([key, value]) => valueOf(labels, key) === value);
  return hasAll && matchExpressions.every(requirement => holds(requirement, labels));
}

/** As in Kubernetes, NotIn also selects labels without the key. */
function holds({ key, operator, values = [] }: LabelRequirement, labels: Labels): boolean {
  const value = valueOf(labels, key);
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

function valueOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
