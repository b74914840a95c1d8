import type { BackendRef, Route } from '../api/objects/gateway-api.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import { isMeshBackend, refTo } from '../api/objects/references.ts';
import type { Steps } from '../api/problem.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';

/** Where a backendRef is: the route, and the steps to it. */
export type BackendPlace = { readonly about: Ref<RouteKind>; readonly at: Steps };

/** A backendRef with its place in the route. */
export type RouteBackendRef = {
  readonly route: Route;
  readonly ref: BackendRef;
  /** Its index among all backendRefs that the cluster serves. */
  readonly index: number;
  readonly place: BackendPlace;
};

/** The backendRefs that a cluster serves; undefined where the route has no such rule or backend. */
export function backendRefsOf(
  route: Route,
  { rule, backend }: EnvoyClusterName,
): readonly RouteBackendRef[] | undefined {
  const refs = rule === 'only' ? allBackendRefs(route) : backendRefsInRule(route, rule, 0);
  if (backend === undefined) return refs;
  const one = refs?.[backend];
  return one && [one];
}

/** Envoy Gateway makes one cluster for all rules of a TLSRoute, TCPRoute or UDPRoute. */
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
  const about = refTo(route);
  return route.rules[rule]?.backendRefs.map((ref, index) => ({
    route,
    ref,
    index: first + index,
    place: { about, at: ['spec', 'rules', rule, 'backendRefs', index] },
  }));
}

/** Whether a backendRef names a MeshEndpoints. */
export function isMeshEndpoints({ ref }: RouteBackendRef): boolean {
  return isMeshBackend(ref);
}

/** The MeshEndpoints that a backendRef names. */
export function meshEndpointsRefOf({
  ref: { namespace, name },
}: Pick<RouteBackendRef, 'ref'>): Ref<'MeshEndpoints'> {
  return { kind: 'MeshEndpoints', namespace, name };
}
