import type { WorkloadKind } from './workloads.ts';

type Served = { readonly apiVersion: string; readonly plural: string };

/** The kinds of workloads as API servers know them; what others need comes first. */
export const SERVED: Readonly<Record<WorkloadKind, Served>> = {
  ServiceAccount: { apiVersion: 'v1', plural: 'serviceaccounts' },
  Role: { apiVersion: 'rbac.authorization.k8s.io/v1', plural: 'roles' },
  RoleBinding: { apiVersion: 'rbac.authorization.k8s.io/v1', plural: 'rolebindings' },
  ConfigMap: { apiVersion: 'v1', plural: 'configmaps' },
  Service: { apiVersion: 'v1', plural: 'services' },
  PodDisruptionBudget: { apiVersion: 'policy/v1', plural: 'poddisruptionbudgets' },
  Deployment: { apiVersion: 'apps/v1', plural: 'deployments' },
  StatefulSet: { apiVersion: 'apps/v1', plural: 'statefulsets' },
};

/** The path of all objects of a kind in a namespace. */
export function pathOfAll(kind: WorkloadKind, namespace: string): string {
  const { apiVersion, plural } = SERVED[kind];
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

/** The path of an object. */
export function pathOf(kind: WorkloadKind, namespace: string, name: string): string {
  return `${pathOfAll(kind, namespace)}/${encodeURIComponent(name)}`;
}
