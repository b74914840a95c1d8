import type { AllowedNamespaces, LabelRequirement, LabelSelector } from '../api/generated/types.ts';
import type { Declared } from './declared.ts';

type Labels = Readonly<Record<string, string>>;

/** Whether the objects of a namespace may use a MeshTailnet. */
export function isAllowed(
  declared: Declared,
  { from, selector }: AllowedNamespaces,
  namespace: string,
): boolean {
  switch (from) {
    case 'All':
      return true;
    case 'Selector':
      return selector !== undefined && selects(selector, labelsOf(declared, namespace));
  }
}

/** Every namespace has its name as a label, given by the API server; one that is not declared has no other. */
function labelsOf(declared: Declared, namespace: string): Labels {
  return { ...declared.namespace(namespace)?.metadata.labels, 'kubernetes.io/metadata.name': namespace };
}

/** Whether labels have all that a selector asks for, as the API server judges it; an empty one asks for nothing. */
export function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  const hasAll = Object.entries(matchLabels).every(([key, value]) => valueOf(labels, key) === value);
  return hasAll && matchExpressions.every(requirement => holds(requirement, labels));
}

/** NotIn holds for labels that do not have the key, too. */
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
