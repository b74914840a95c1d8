import type { MeshBindingSettings, Kinds } from '../../api/generated/types.ts';
import { endpointsOf } from '../../api/objects/endpoints.ts';
import { CHECKED_BY_OPERATOR } from '../../api/shares.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { resolveRoute } from '../resolve-route.ts';
import { ALL_BACKENDS, allOfItsNamespace, includesBackend, parseBackend } from '../settings/backend-text.ts';
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
 * Endpoints that the operator has not decided about get traffic only where Envoy checks them, so that a switch before then
 * would take traffic from them, or send it to some that nothing has checked: EDS has a switch sooner than the cluster. Envoy
 * checks a paused MeshEndpoints in any number of clusters.
 */
const MAX_CLUSTERS = 8;
const AGAIN_AT_CLUSTERS = 6;

/** The backends of a route that Envoy checks by itself, once for each cluster that has them. */
export function checkedBackends(resources: TrafficResources, route: Route): readonly string[] {
  return resolveRoute(resources, route).flatMap(rule =>
    envoyHealthCheckOf(rule) ? backendsWithChecks(rule) : [],
  );
}

/** How many clusters each backend is in, of those for which it matters; sorted by name. */
export function crowdedBackends(
  backendsOfRoutes: Iterable<readonly string[]>,
): readonly (readonly [backend: string, clusters: number])[] {
  const clusters = new Map<string, number>();
  for (const backends of backendsOfRoutes)
    for (const backend of backends) clusters.set(backend, (clusters.get(backend) ?? 0) + 1);
  return [...clusters].filter(([, count]) => count > AGAIN_AT_CLUSTERS).sort(([a], [b]) => (a < b ? -1 : 1));
}

type List = NonNullable<MeshBindingSettings['checkedByOperator']>;

/** The backends that the operator alone checks, after those before; undefined without any. */
export function checkedByOperator(
  crowded: ReturnType<typeof crowdedBackends>,
  before: List,
  meshEndpoints: TrafficResources['meshEndpoints'],
): List | undefined {
  const counts = new Map(crowded);
  const listed = [...new Set([...counts.keys(), ...before])].filter(backend => {
    const count = counts.get(backend) ?? 0;
    const { isPaused, areAll, isOneHealthy } = decidedOf(backend, meshEndpoints);
    if (isPaused) return false;
    if (includesBackend(before, backend)) return count > AGAIN_AT_CLUSTERS || !areAll;
    return count > MAX_CLUSTERS && areAll && isOneHealthy;
  });
  return listed.length === 0 ? undefined : withinShares(listed.sort());
}

/**
 * What the operator has decided about the endpoints of a backend, by the status that it has written; it does not check those
 * of a paused object. A text for several backends has no endpoints of its own, so that it is not listed again.
 */
function decidedOf(text: string, meshEndpoints: TrafficResources['meshEndpoints']) {
  const backend = parseBackend(text);
  const object = backend && meshEndpoints({ kind: 'MeshEndpoints', ...backend });
  const statuses = object ? statusesOf(object, backend.port) : [];
  const isPaused = object?.spec.paused === true;
  return { isPaused, areAll: !statuses.includes('UNKNOWN'), isOneHealthy: statuses.includes('HEALTHY') };
}

function statusesOf(object: Kinds['MeshEndpoints'], port: number) {
  const healthOf = healthStatusesOf(object, 'UNKNOWN');
  const endpoints = endpointsOf(object).map(endpoint => ({ endpoint }));
  return endpoints.filter(each => each.endpoint.port === port && healthCheckOf(each)).map(healthOf);
}

/** All of a namespace in place of more than its share; all of a Gateway in place of more than that may have. */
function withinShares(listed: List): List {
  const { ofNamespace, ofGateway } = CHECKED_BY_OPERATOR;
  const namespaces = [...new Set(listed.map(allOfItsNamespace))];
  const shared = namespaces.flatMap(namespace => {
    const own = listed.filter(backend => allOfItsNamespace(backend) === namespace);
    return own.length > ofNamespace ? [namespace] : own;
  });
  return [shared, namespaces].find(({ length }) => length <= ofGateway) ?? [ALL_BACKENDS];
}
