import type { BackendRef, Route } from '../api/gateway-api.ts';
import type { Ref } from '../api/key.ts';
import { isMeshBackend } from '../api/references.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';

/** A reference of a route to a backend, with where it stands. */
export type RouteBackendRef = {
  readonly route: Route;
  readonly ref: BackendRef;
  /** Its position among all references of the rule. */
  readonly index: number;
  /** Such as spec.rules[0].backendRefs[1]. */
  readonly path: string;
};

/** The references that a cluster serves, or nothing where the route has no such rule or backend. */
export function backendRefsOf(
  route: Route,
  { rule, backend }: EnvoyClusterName,
): readonly RouteBackendRef[] | undefined {
  const references = rule === 'only' ? allBackendRefs(route) : backendRefsInRule(route, rule, 0);
  if (backend === undefined) return references;
  const one = references?.[backend];
  return one && [one];
}

/** Envoy Gateway makes one cluster of all rules of a kind whose rules have no conditions. */
function allBackendRefs(route: Route): readonly RouteBackendRef[] {
  const all: RouteBackendRef[] = [];
  for (const rule of route.rules.keys()) all.push(...(backendRefsInRule(route, rule, all.length) ?? []));
  return all;
}

function backendRefsInRule(
  route: Route,
  rule: number,
  first: number,
): readonly RouteBackendRef[] | undefined {
  return route.rules[rule]?.backendRefs.map((ref, at) => ({
    route,
    ref,
    index: first + at,
    path: `spec.rules[${rule}].backendRefs[${at}]`,
  }));
}

/** Whether a reference is to an object of ours. */
export function isMeshEndpoints({ ref }: RouteBackendRef): boolean {
  return isMeshBackend(ref);
}

/** The object of ours that a reference is to. */
export function meshEndpointsRefOf({
  ref: { namespace, name },
}: Pick<RouteBackendRef, 'ref'>): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace, name };
}
