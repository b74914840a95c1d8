import { isEqual } from '../../api/json.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { isMeshBackend } from '../../api/objects/references.ts';
import { severityOf } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';
import { poolProblemOf } from '../../traffic/data-path.ts';
import { healthStatusesOf } from '../../traffic/endpoints/health-status.ts';
import type { HealthStatus } from '../../traffic/endpoints/health-status.ts';
import type { EnvoyEndpoint, EnvoyLocality } from '../../traffic/endpoints/load-assignment.ts';
import type { RouteTraffic, RuleTraffic } from '../../traffic/endpoints/route-traffic.ts';
import { isRequired } from '../../traffic/policy/route-policy.ts';
import type { ResolvedEndpoint } from '../../traffic/resolve-backend-ref.ts';
import type { ResolvedBackend } from '../../traffic/resolve-route.ts';
import { isDecided, isElsewhere, otherBackendProblem } from './known.ts';
import type { KnownObjects } from './known.ts';

/** How many of the requests reach an endpoint; unknown where the objects that decide it could not be read. */
export type Reach = 'all' | 'some' | 'none' | 'unknown';

/** What several parts of the requests together reach: a part that is not known matters unless another one is known to fail. */
export function together(parts: readonly Reach[]): Reach {
  const known = parts.filter(part => part !== 'unknown');
  if (known.every(part => part === 'all')) return known.length < parts.length ? 'unknown' : 'all';
  return known.every(part => part === 'none') ? 'none' : 'some';
}

/** What Envoys get for a rule, and how they reach the mesh. */
export type CarriedTraffic = RuleTraffic & Pick<RouteTraffic, 'path'>;

/** Whether a MeshEndpoints of the rule, or a Service of its policy, serves requests. */
export function isServed(traffic: CarriedTraffic, known: KnownObjects): boolean {
  return candidatesOf(traffic, known).some(each => each.isMesh && each.isCarried && isUsable(each));
}

/** How many of the requests for a rule reach an endpoint. What is no MeshEndpoints is followed no further. */
export function reachOfRule(
  { route, rule }: { readonly route: Route; readonly rule: number },
  traffic: (CarriedTraffic & { readonly ofServices: readonly Problem[] }) | undefined,
  known: KnownObjects,
): Reach {
  const { backendRefs: refs = [], mirrors = [] } = route.rules[rule] ?? {};
  if (mirrors.some(isMeshBackend)) return 'none';
  const ofCluster = traffic ? reachOfCluster(traffic, known) : 'none';
  const parts = refs.flatMap((ref, index): readonly Reach[] => {
    if (ref.weight === 0) return [];
    const at = ['spec', 'rules', rule, 'backendRefs', index];
    if (!isMeshBackend(ref)) {
      const isLost =
        traffic?.ofServices.some(each => isEqual(each.at, at)) ?? otherBackendProblem(ref, known);
      return [isLost ? 'none' : 'all'];
    }
    const unused = (traffic?.unused ?? []).filter(
      each => isEqual(each.at, at) && severityOf(each) === 'error',
    );
    const whole = unused.filter(({ endpoint }) => endpoint === undefined);
    if (whole.some(each => isDecided(each, known))) return ['none'];
    // What is not known of single endpoints decides where no other endpoint is used.
    const open = ofCluster === 'none' ? unused.filter(each => !isDecided(each, known)) : whole;
    return [open.some(isElsewhere) ? 'unknown' : ofCluster];
  });
  return parts.length === 0 ? 'none' : together(parts);
}

function isUnused(
  { unused }: RuleTraffic,
  known: KnownObjects,
  at: readonly (string | number)[],
  name?: string,
) {
  return unused.some(
    each =>
      each.endpoint === name &&
      isEqual(each.at, at) &&
      severityOf(each) === 'error' &&
      isDecided(each, known),
  );
}

/** An endpoint that Envoy may send requests to. */
type Candidate = {
  /** Whether it is of a MeshEndpoints, or of a Service that the policy of the rule adds. */
  readonly isMesh: boolean;
  readonly priority: number;
  readonly health: HealthStatus;
  /** Whether a request that Envoy sends to it gets there. */
  readonly isCarried: boolean;
};

/** Envoy sends requests to the first priority with an endpoint that is not unhealthy, in equal shares as far as this matters. */
function reachOfCluster(traffic: CarriedTraffic, known: KnownObjects): Reach {
  const usable = candidatesOf(traffic, known).filter(isUsable);
  const first = Math.min(...usable.map(({ priority }) => priority));
  const used = usable.filter(({ priority }) => priority === first);
  return used.length === 0 ? 'none' : together(used.map(({ isCarried }) => (isCarried ? 'all' : 'none')));
}

function isUsable({ health }: Candidate): boolean {
  return health !== 'UNHEALTHY' && health !== 'DRAINING';
}

function candidatesOf(traffic: CarriedTraffic, known: KnownObjects): readonly Candidate[] {
  const { rule, localities, path } = traffic;
  const own = new Set(rule.backends.map(({ index }) => index));
  const beyond = new Set(rule.levels?.beyond.map(({ index }) => index));
  const others = localities
    .filter(({ backend }) => !own.has(backend))
    .flatMap(({ backend, priority, endpoints }) =>
      endpoints.map(({ health }) => ({ isMesh: beyond.has(backend), priority, health, isCarried: true })),
    );
  const mesh = rule.backends
    .filter(({ place, ref }) => ref.weight > 0 && !isUnused(traffic, known, place.at))
    .flatMap(backend =>
      usedEndpoints(backend, traffic)
        .filter(({ endpoint: { name } }) => !isUnused(traffic, known, backend.place.at, name))
        .map(resolved => candidateOf(resolved, localitiesOf(backend, localities), path, known)),
    );
  return [...mesh, ...others];
}

function candidateOf(
  resolved: ResolvedEndpoint,
  localities: readonly EnvoyLocality[],
  path: CarriedTraffic['path'],
  known: KnownObjects,
): Candidate {
  const { endpoint, object } = resolved;
  const sent = localities.flatMap(({ endpoints }) => endpoints).find(each => isFor(each, resolved));
  return {
    isMesh: true,
    priority: priorityOf(resolved, localities) ?? endpoint.priority,
    // Envoy gets UNKNOWN for endpoints that are all unhealthy, where its own checks can decide: here the operator's verdict counts.
    health: sent?.health === 'UNHEALTHY' ? sent.health : healthStatusesOf(object, 'UNKNOWN')({ endpoint }),
    isCarried: path === 'Direct' || endpoint.externalTarget !== undefined || !isPoolBroken(resolved, known),
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
export function isFor(sent: EnvoyEndpoint, { endpoint }: ResolvedEndpoint): boolean {
  const { meshIP, port, externalTarget } = endpoint;
  if (sent.externalTarget !== externalTarget) return false;
  const target = sent.relayedTo ?? sent;
  return externalTarget !== undefined || (target.address === meshIP && target.port === port);
}

/** Whether the mesh pods of an endpoint are known not to carry requests. */
export function isPoolBroken({ tailnet }: Pick<ResolvedEndpoint, 'tailnet'>, known: KnownObjects): boolean {
  return (
    poolProblemOf(tailnet) !== undefined && (known.hasStatus('MeshTailnet') || tailnet.status !== undefined)
  );
}
