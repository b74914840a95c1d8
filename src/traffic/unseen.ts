import { isOverHttp, keyOf } from '../api/key.ts';
import type { Ref, RouteKind } from '../api/key.ts';
import type { Route } from '../api/objects/gateway-api.ts';
import { isMeshBackend, refTo } from '../api/objects/references.ts';
import { titleOfSubject } from '../api/problem.ts';
import type { ProblemAt } from '../api/problem.ts';
import { meshEndpointsRefOf } from './backend-refs.ts';
import type { TrafficResources } from './traffic-resources.ts';

/*
 * Envoy Gateway looks for the CRDs of backendResources once, when it starts. One that started before our CRDs were served translates
 * MeshBindings, but answers every request of a route to MeshEndpoints with 500, and reports that its backends do not exist, which is
 * also what it reports of a backend that really is missing, or that it has not seen yet.
 */

/** How long Envoy Gateway may take until it has seen a new MeshEndpoints. */
export const SEEN_MS = 30_000;

/** A route that lacks a backend for Envoy Gateway, though each of its backends is a MeshEndpoints that exists. */
export type Unseen = {
  readonly route: Ref<RouteKind>;
  /** When the last of its MeshEndpoints was created. */
  readonly sinceMs: number;
};

/** The one that has waited longest of the HTTPRoutes and GRPCRoutes to an object. */
export function unseenOf(routes: readonly Route[], traffic: TrafficResources): Unseen | undefined {
  const found = routes
    .filter(({ kind, lacksBackend }) => lacksBackend && isOverHttp(kind))
    .flatMap(route => {
      const sinceMs = completeSinceMs(route, traffic);
      return sinceMs === undefined ? [] : [{ route: refTo(route), sinceMs }];
    });
  return found.sort((a, b) => a.sinceMs - b.sinceMs || (keyOf(a.route) < keyOf(b.route) ? -1 : 1))[0];
}

/**
 * When the last of the backends of a route was created, if each is a MeshEndpoints that exists. Envoy Gateway refuses MeshEndpoints
 * of a filter RequestMirror, whether or not it sees them.
 */
export function completeSinceMs(route: Route, traffic: TrafficResources): number | undefined {
  if (route.rules.some(({ mirrors }) => mirrors.length > 0)) return undefined;
  const objects = route.rules
    .flatMap(({ backendRefs }) => backendRefs)
    .map(ref => (isMeshBackend(ref) ? traffic.meshEndpoints(meshEndpointsRefOf({ ref })) : undefined));
  if (objects.includes(undefined)) return undefined;
  const created = objects.map(each => Date.parse(each?.metadata.creationTimestamp ?? ''));
  return Math.max(...created.filter(Number.isFinite));
}

/** The milliseconds until Envoy Gateway should have seen what exists; 0 or less where it should have by now, or has. */
export function unseenInMs(unseen: Unseen | undefined, now: Date): number {
  return unseen ? unseen.sinceMs + SEEN_MS - now.getTime() : 0;
}

/** What lets Envoy Gateway see MeshEndpoints that exist. */
export const MAKE_SEEN =
  'restart it if it started before the CRD of MeshEndpoints was served, as mesh-gateway doctor shows, such as by kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway; else let its watch include their namespaces';

/** That Envoy Gateway does not see the MeshEndpoints of a route, though they exist. */
export function notSeen(about: Ref<RouteKind>): ProblemAt<'MeshEndpoints Programmed'> {
  const text = `Envoy Gateway reports BackendNotFound for ${titleOfSubject(about)} though its MeshEndpoints exist, and answers its requests with 500`;
  return { reason: 'NotSeen', about, text, fix: MAKE_SEEN };
}
