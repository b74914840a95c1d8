import type { MeshBindingSettings } from '../../api/generated/types.ts';
import { endpointsOf } from '../../api/objects/endpoints.ts';
import { MAX_CHECKED_BY_OPERATOR } from '../../api/shares.ts';
import { inTurns } from '../../api/turns.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import { isIn, parseBackend } from '../settings/backend-text.ts';
import { backendsWithChecks, envoyHealthCheckOf, healthCheckOf } from '../settings/envoy-health-check.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import { healthStatusesOf } from './health-status.ts';

/*
 * Envoy checks an endpoint once for each of its clusters. Above 8 clusters of a Gateway the operator alone checks a backend:
 * a port of a MeshEndpoints, whose endpoints are in the same clusters.
 *
 *   clusters    Envoy checks it                  the operator alone checks it
 *   6 or fewer  stays                            Envoy checks it, once the operator has decided about all its endpoints
 *   7 or 8      stays                            stays
 *   9 or more   the operator alone checks it,    stays
 *               once it has decided about all its endpoints, and one is healthy
 *
 * Endpoints that the operator has not decided about get traffic only where Envoy checks them, so a switch before then
 * would take traffic from them, or send it to some that nothing has checked: EDS has a switch sooner than the cluster. Envoy
 * checks a paused MeshEndpoints in any number of clusters, and what a MeshBinding has no room for.
 */
const MAX_CLUSTERS = 8;
const AGAIN_AT_CLUSTERS = 6;

/** The backends of a resolved route that Envoy checks by itself, once for each cluster that has them. */
export function checkedBackends(rules: readonly ResolvedRule[]): readonly string[] {
  return rules.flatMap(rule => (envoyHealthCheckOf(rule) ? backendsWithChecks(rule) : []));
}

/** Backends with the number of clusters that they are in. */
type Counts = readonly (readonly [backend: string, clusters: number])[];

/** How many clusters each backend is in, by the `checkedBackends` of routes. */
export function clustersOfBackends(backendsOfRoutes: readonly (readonly string[])[]): Counts {
  return summed(backendsOfRoutes.flat().map(backend => [backend, 1] as const));
}

/** The backends in enough clusters to matter; sorted by name. */
export function crowdedBackends(parts: readonly Counts[]): Counts {
  const crowded = summed(parts.flat()).filter(([, count]) => count > AGAIN_AT_CLUSTERS);
  return crowded.sort(([a], [b]) => (a < b ? -1 : 1));
}

function summed(counts: Counts): (readonly [string, number])[] {
  const clusters = new Map<string, number>();
  for (const [backend, count] of counts) clusters.set(backend, (clusters.get(backend) ?? 0) + count);
  return [...clusters];
}

type List = NonNullable<MeshBindingSettings['checkedByOperator']>;

/** The backends that the operator alone checks, after those before; undefined without any. */
export function checkedByOperator(
  crowded: ReturnType<typeof crowdedBackends>,
  before: List,
  decisionOf: (backend: string) => Decision,
): List | undefined {
  const clusters = new Map(crowded);
  const isListed = isIn(before);
  const wanted = [...new Set([...clusters.keys(), ...before])].filter(backend => {
    const count = clusters.get(backend) ?? 0;
    const decision = decisionOf(backend);
    if (decision === 'paused') return false;
    if (isListed(backend)) return count > AGAIN_AT_CLUSTERS || decision === 'undecided';
    return count > MAX_CLUSTERS && decision === 'healthy';
  });
  const inOrder = wanted.sort(
    (a, b) =>
      Number(isListed(b)) - Number(isListed(a)) ||
      (clusters.get(b) ?? 0) - (clusters.get(a) ?? 0) ||
      (a < b ? -1 : 1),
  );
  return inOrder.length === 0 ? undefined : withinShares(inOrder);
}

/** How many backends are in more than 8 clusters, or were until lately, and how many of them the operator alone checks. */
export function countCrowded(
  crowded: ReturnType<typeof crowdedBackends>,
  listed: List,
): { readonly total: number; readonly checkedByOperator: number } {
  const above = crowded.filter(([, count]) => count > MAX_CLUSTERS).map(([backend]) => backend);
  return { total: new Set([...above, ...listed]).size, checkedByOperator: listed.length };
}

/** What the operator has decided about the endpoints of a backend; it decides nothing about those of a paused object. */
export type Decision =
  | 'paused'
  /** Not about all of them. */
  | 'undecided'
  | 'none-healthy'
  | 'healthy';

/** The decision by the status that the operator has written. */
export function decisionOf(backend: string, meshEndpoints: TrafficResources['meshEndpoints']): Decision {
  const parsed = parseBackend(backend);
  const object = parsed && meshEndpoints({ kind: 'MeshEndpoints', ...parsed });
  if (!object) return 'none-healthy';
  if (object.spec.paused) return 'paused';
  const healthOf = healthStatusesOf(object, 'UNKNOWN');
  const endpoints = endpointsOf(object).map(endpoint => ({ endpoint }));
  const checked = endpoints.filter(each => each.endpoint.port === parsed.port && healthCheckOf(each));
  const statuses = new Set(checked.map(healthOf));
  if (statuses.has('UNKNOWN')) return 'undecided';
  return statuses.has('HEALTHY') ? 'healthy' : 'none-healthy';
}

/**
 * As many as a MeshBinding has room for. The first of a namespace keep their places, which changes no checks, and the most crowded
 * save the most.
 */
function withinShares(inOrder: readonly string[]): List {
  const listed = inTurns(inOrder, backend => backend.slice(0, backend.indexOf('/')));
  return listed.slice(0, MAX_CHECKED_BY_OPERATOR).sort();
}
