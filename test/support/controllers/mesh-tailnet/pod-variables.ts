import { at, listAt } from '../../synth/parts.ts';

/** The variables of a container of a pod with addresses: a variable is replaced where it occurs after its definition. */
export function podVariables(container: unknown, podIPs: readonly string[]): ReadonlyMap<string, string> {
  const podFields: Readonly<Record<string, string | undefined>> = {
    'status.podIP': podIPs[0],
    'status.podIPs': podIPs.join(','),
  };
  const variables = new Map<string, string>();
  for (const variable of listAt(container, 'env')) {
    const { name, value = '' } = variable as { name: string; value?: string };
    const fieldPath = at(variable, 'valueFrom', 'fieldRef', 'fieldPath');
    const text = typeof fieldPath === 'string' ? (podFields[fieldPath] ?? fieldPath) : value;
    const replaced = (reference: string, other: string) => variables.get(other) ?? reference;
    variables.set(name, text.replaceAll(/\$\((\w+)\)/g, replaced));
  }
  return variables;
}
