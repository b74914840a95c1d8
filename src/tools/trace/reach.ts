import { isEqual } from '../../api/json.ts';
import { keyOf } from '../../api/key.ts';
import type { BackendRef } from '../../api/objects/gateway-api.ts';
import { isMeshBackend } from '../../api/objects/references.ts';
import { healthStatusesOf } from '../../traffic/endpoints/health-status.ts';
import type { HealthStatus } from '../../traffic/endpoints/health-status.ts';
import type { EnvoyEndpoint, EnvoyLocality } from '../../traffic/endpoints/load-assignment.ts';
import type { RuleTraffic } from '../../traffic/endpoints/route-traffic.ts';
import { poolProblemOf } from '../../traffic/data-path.ts';
import { isRequired } from '../../traffic/policy/route-policy.ts';
import type { ResolvedBackend } from '../../traffic/resolve-route.ts';
import type { ResolvedEndpoint } from '../../traffic/resolve-backend-ref.ts';
import type { Catalog } from '../check/objects.ts';
import { isDecided } from '../check/traffic.ts';
import type { RuleChoice } from './rules.ts';

/** How many of the requests reach an endpoint; unknown where the objects that decide it could not be read. */
export type Reach = 'all' | 'some' | 'none' | 'unknown';

/** What several parts of the requests together reach. */
export function together(parts: readonly Reach[]): Reach {
  const known = parts.filter(part => part !== 'unknown');
  if (known.length === 0) return 'unknown';
  if (known.every(part => part === 'all')) return 'all';
  return known.every(part => part === 'none') ? 'none' : 'some';
}

/** How many of the requests for a rule reach an endpoint. What is no MeshEndpoints is followed no further. */
export function reachOfRule(
  { route, rule }: RuleChoice,
  traffic: RuleTraffic | undefined,
  catalog: Catalog,
): Reach {
  const refs = route.rules[rule]?.backendRefs ?? [];
  const ofCluster = traffic ? reachOfCluster(traffic, catalog) : 'none';
  const parts = refs.flatMap((ref, index): readonly Reach[] => {
    if (ref.weight === 0) return [];
    if (!isMeshBackend(ref)) return [isMissing(ref, catalog) ? 'none' : 'all'];
    const at = ['spec', 'rules', rule, 'backendRefs', index];
    return [traffic && isUnused(traffic, catalog, at) ? 'none' : ofCluster];
  });
  return parts.length === 0 ? 'none' : together(parts);
}

/** Whether a Service does not exist, as far as is known. */
export function isMissing({ group, kind, namespace, name }: BackendRef, catalog: Catalog): boolean {
  const isService = group === '' && kind === 'Service';
  return isService && catalog.has('Service') && !catalog.get(keyOf({ kind: 'Service', namespace, name }));
}

function isUnused(
  { unused }: RuleTraffic,
  catalog: Catalog,
  at: readonly (string | number)[],
  name?: string,
) {
  return unused.some(each => each.endpoint === name && isEqual(each.at, at) && isDecided(each, catalog));
}

/** An endpoint that Envoy may send requests to. */
type Candidate = {
  readonly priority: number;
  readonly health: HealthStatus;
  /** Whether a request that Envoy sends to it gets there. */
  readonly isCarried: boolean;
};

/** Envoy sends requests to the first priority with an endpoint that is not unhealthy, in equal shares as far as this matters. */
function reachOfCluster(traffic: RuleTraffic, catalog: Catalog): Reach {
  const usable = candidatesOf(traffic, catalog).filter(
    ({ health }) => health !== 'UNHEALTHY' && health !== 'DRAINING',
  );
  const first = Math.min(...usable.map(({ priority }) => priority));
  const used = usable.filter(({ priority }) => priority === first);
  return used.length === 0 ? 'none' : together(used.map(({ isCarried }) => (isCarried ? 'all' : 'none')));
}

function candidatesOf(traffic: RuleTraffic, catalog: Catalog): readonly Candidate[] {
  const { rule, localities } = traffic;
  const own = new Set(rule.backends.map(({ index }) => index));
  const others = localities
    .filter(({ backend }) => !own.has(backend))
    .flatMap(({ priority, endpoints }) =>
      endpoints.map(({ health }) => ({ priority, health, isCarried: true })),
    );
  const mesh = rule.backends
    .filter(({ place }) => !isUnused(traffic, catalog, place.at))
    .flatMap(backend =>
      usedEndpoints(backend, traffic)
        .filter(({ endpoint: { name } }) => !isUnused(traffic, catalog, backend.place.at, name))
        .map(resolved => candidateOf(resolved, localitiesOf(backend, localities), catalog)),
    );
  return [...mesh, ...others];
}

function candidateOf(
  resolved: ResolvedEndpoint,
  localities: readonly EnvoyLocality[],
  catalog: Catalog,
): Candidate {
  const { endpoint, object } = resolved;
  return {
    priority: priorityOf(resolved, localities) ?? endpoint.priority,
    // Envoy gets UNKNOWN for endpoints that are all unhealthy, where its own checks can decide: here the operator's verdict counts.
    health: healthStatusesOf(object, 'UNKNOWN')({ endpoint }),
    isCarried: endpoint.externalTarget !== undefined || !isPoolBroken(resolved, catalog),
  };
}

/** The endpoints of a backend that the policy of the rule leaves. */
export function usedEndpoints(
  { endpoints }: ResolvedBackend,
  { rule }: RuleTraffic,
): readonly ResolvedEndpoint[] {
  return endpoints.filter(({ endpoint }) => isRequired(rule.policy, endpoint));
}

/** The localities of a backend. */
export function localitiesOf(
  { index }: Pick<ResolvedBackend, 'index'>,
  localities: readonly EnvoyLocality[],
): readonly EnvoyLocality[] {
  return localities.filter(({ backend }) => backend === index);
}

/** The priority with which Envoy gets an endpoint; undefined where it does not get it. */
export function priorityOf(
  resolved: ResolvedEndpoint,
  localities: readonly EnvoyLocality[],
): number | undefined {
  return localities.find(({ endpoints }) => endpoints.some(each => isFor(each, resolved)))?.priority;
}

/** Whether Envoy dials this for an endpoint. */
export function isFor(sent: EnvoyEndpoint, { endpoint: { meshIP, port } }: ResolvedEndpoint): boolean {
  const target = sent.relayedTo ?? sent;
  return target.address === meshIP && target.port === port;
}

/** Whether the mesh pods of an endpoint are known not to carry requests. */
export function isPoolBroken({ tailnet }: Pick<ResolvedEndpoint, 'tailnet'>, catalog: Catalog): boolean {
  return poolProblemOf(tailnet) !== undefined && (catalog.hasStatus || tailnet.status !== undefined);
}
