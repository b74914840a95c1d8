import type { KubeObject } from '../../../lab/kube/object.ts';

/** The cluster-scoped kinds. */
export const clusterScoped = [
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'Namespace',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
];

type Step = string | number;
type Fields = Record<Step, unknown>;

/** The value at a path of fields and indexes; undefined if there is none. */
export function at(value: unknown, ...steps: readonly Step[]): unknown {
  return steps.reduce((inner, step) => (inner as Fields | undefined)?.[step], value);
}

/** The list at a path; empty if there is none. */
export function listAt(value: unknown, ...steps: readonly Step[]): readonly unknown[] {
  const found = at(value, ...steps);
  return Array.isArray(found) ? (found as readonly unknown[]) : [];
}

/** The map of texts at a path. */
export function textsAt(value: unknown, ...steps: readonly Step[]): Readonly<Record<string, string>> {
  return (at(value, ...steps) ?? {}) as Readonly<Record<string, string>>;
}

/** Sets the value at a path; undefined deletes it. */
export function put(value: unknown, steps: readonly Step[], put: unknown): void {
  const last = steps.at(-1) ?? '';
  const around = at(value, ...steps.slice(0, -1)) as Fields;
  if (put === undefined) Reflect.deleteProperty(around, last);
  else around[last] = put;
}

/** The objects with a pod template. */
export function workloads(objects: readonly KubeObject[]): readonly KubeObject[] {
  return objects.filter(({ kind }) => /^(Deployment|StatefulSet|DaemonSet|Job|CronJob)$/.test(kind));
}

const TEMPLATE = ['spec', 'template'] as const;

/** The labels of the pods of an object. */
export function podLabels(object: KubeObject): Readonly<Record<string, string>> {
  return textsAt(object, ...TEMPLATE, 'metadata', 'labels');
}

/** The pod of an object. */
export function podOf(object: KubeObject): unknown {
  return at(object, ...TEMPLATE, 'spec');
}

/** The containers of an object's pod. */
export function containersOf(object: KubeObject): readonly unknown[] {
  return listAt(podOf(object), 'containers');
}

/** Whether labels include all of others. */
export function areAmong(
  labels: Readonly<Record<string, string>>,
  others: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(labels).every(([label, value]) => others[label] === value);
}
