import type { BackendRef, Route } from '../api/gateway-api.ts';
import type { Ref } from '../api/key.ts';
import { isMeshBackend } from '../api/references.ts';
import type { ClusterName } from './envoy-cluster-name.ts';

/** A reference of a route to a backend, with where it stands. */
export type Reference = {
  readonly route: Route;
  readonly ref: BackendRef;
  /** Its position among all references of the rule. */
  readonly index: number;
  /** Such as spec.rules[0].backendRefs[1]. */
  readonly path: string;
};

/** The references that a cluster serves, or nothing where the route has no such rule or backend. */
export function referencesOf(route: Route, { rule, backend }: ClusterName): readonly Reference[] | undefined {
  const references = rule === 'only' ? allReferences(route) : referencesIn(route, rule, 0);
  if (backend === undefined) return references;
  const one = references?.[backend];
  return one && [one];
}

/** Envoy Gateway makes one cluster of all rules of a kind whose rules have no conditions. */
function allReferences(route: Route): readonly Reference[] {
  const all: Reference[] = [];
  for (const rule of route.rules.keys()) all.push(...(referencesIn(route, rule, all.length) ?? []));
  return all;
}

function referencesIn(route: Route, rule: number, first: number): readonly Reference[] | undefined {
  return route.rules[rule]?.backendRefs.map((ref, at) => ({
    route,
    ref,
    index: first + at,
    path: `spec.rules[${rule}].backendRefs[${at}]`,
  }));
}

/** Whether a reference is to an object of ours. */
export function isMesh({ ref }: Reference): boolean {
  return isMeshBackend(ref);
}

/** The object of ours that a reference is to. */
export function objectOf({ ref: { namespace, name } }: Pick<Reference, 'ref'>): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace, name };
}
