/*
 * Resolves the backendRefs of routes to endpoints. The stages, each in the file of its name:
 *
 *   1  envoy-cluster-name      the name of an Envoy cluster -> the route and its rule
 *   2  backend-refs            the rule -> its backendRefs
 *   3  resolve-backend-ref     a backendRef -> the endpoints of its MeshEndpoints with its port
 *                              (by permissions, upstream-protocol, upstream-tls)
 *   4  rule-conflicts          drops endpoints that cannot be in one Envoy cluster with the others of the rule
 *      other-backends          adds the Services and Backends of the rule
 *      rule-shares             how Envoy's routes share its requests, where each backend has a cluster of its own
 *
 * Whatever a stage drops is an entry of `unused`, a problem from unused.ts. Two folders continue from
 * the resolved rule, in this order; nothing in this folder imports them:
 *
 *   5  settings/envoy-cluster-settings  the settings of its Envoy cluster (with envoy-health-check);
 *                                       revision hashes those of a Gateway
 *      settings/tls-budget              takes the TLS of those that a budget has no room for: of their namespace, or of all
 *   6  endpoints/load-assignment        the endpoints that Envoy gets (by path-to-backend, health-status)
 */
import type { Kinds } from '../api/generated/types.ts';
import { isOverHttp } from '../api/key.ts';
import type { BackendRef, Route } from '../api/objects/gateway-api.ts';
import { isAnchor, isMeshBackend, refTo } from '../api/objects/references.ts';
import { backendRefsOf, isMeshEndpoints } from './backend-refs.ts';
import type { BackendPlace, RouteBackendRef } from './backend-refs.ts';
import { formatEnvoyClusterName, ruleOfBackendCluster } from './envoy-cluster-name.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';
import {
  canMixWith,
  isResolved,
  isServedApart,
  isWithoutTls,
  otherBackendsOf,
  socketNameOf,
} from './other-backends.ts';
import type { OtherBackend } from './other-backends.ts';
import { levelsOf } from './policy/levels.ts';
import type { Levels } from './policy/levels.ts';
import { policyOf } from './policy/route-policy.ts';
import { resolveBackendRef } from './resolve-backend-ref.ts';
import type { Candidate, Filtered, ResolvedEndpoint } from './resolve-backend-ref.ts';
import {
  withDefaultProtocol,
  withinTlsLimits,
  withoutDuplicateAddresses,
  withoutDuplicateNames,
  withSameProtocol,
  withValidCaBundles,
} from './rule-conflicts.ts';
import { ruleSharesOf } from './rule-shares.ts';
import type { RuleShares } from './rule-shares.ts';
import type { TrafficResources } from './traffic-resources.ts';
import { unusedReference } from './unused.ts';
import type { UnusedBackend } from './unused.ts';
import { defaultProtocol } from './upstream-protocol.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';

/** A rule with MeshEndpoints among its backends, and the endpoints that get its traffic. */
export type ResolvedRule = {
  readonly cluster: EnvoyClusterName;
  /** The protocol of the first endpoint; the default of the kind of route where there is none. */
  readonly protocol: UpstreamProtocol;
  /** Whether the rule has other backends than MeshEndpoints, with a weight above 0. */
  readonly isMixed: boolean;
  /** The Services and Backends of the rule, if the extension server serves their endpoints too. */
  readonly otherBackends: readonly OtherBackend[];
  /** The backendRefs to MeshEndpoints in their order, also those without endpoints. */
  readonly backends: readonly ResolvedBackend[];
  /** Which of these endpoints are used, and which first. */
  readonly policy?: Kinds['MeshRoutePolicy'];
  /** The levels of the policy, if it has any, with the Services that it adds to the rule. */
  readonly levels?: Levels;
  /** How its requests are shared where each backend has a cluster of its own; undefined if that cannot be. */
  readonly shares?: RuleShares;
  /** Those of weight 0: their sockets are in the cluster before they get a weight, which is a change of endpoints alone. */
  readonly standby: Standby;
  /** What gets no traffic, or no filters, although the rule names it. */
  readonly unused: readonly UnusedBackend[];
};

/** Backends of weight 0. */
type Standby = {
  readonly endpoints: readonly ResolvedEndpoint[];
  /** The names of the sockets of Services without TLS. */
  readonly services: readonly string[];
};

/** A backendRef to a MeshEndpoints, and the endpoints that it resolves to. */
export type ResolvedBackend = {
  /** Its index among all backendRefs of the rule; Envoy Gateway names the locality by it. */
  readonly index: number;
  readonly ref: BackendRef;
  readonly place: BackendPlace;
  readonly endpoints: readonly ResolvedEndpoint[];
};

/**
 * Resolves the rule that an Envoy cluster serves; undefined where the cluster must not be changed: the route does not
 * exist or is an anchor, has no such rule, or the rule has no MeshEndpoints among its backends.
 */
export function resolveEnvoyCluster(
  resources: TrafficResources,
  cluster: EnvoyClusterName,
): ResolvedRule | undefined {
  const { kind, namespace, name } = cluster;
  const route = resources.route({ kind, namespace, name });
  return route && !isAnchor(route) ? resolveRule(resources, route, cluster) : undefined;
}

/** Resolves all rules of a route that have MeshEndpoints among their backends. */
export function resolveRoute(resources: TrafficResources, route: Route): readonly ResolvedRule[] {
  return clustersOf(route).flatMap(cluster => resolveRule(resources, route, cluster) ?? []);
}

/** The rules of a route that have MeshEndpoints among their backends, with these. */
export function meshRulesOf(
  route: Route,
): readonly { readonly cluster: EnvoyClusterName; readonly meshRefs: readonly RouteBackendRef[] }[] {
  return clustersOf(route)
    .map(cluster => ({ cluster, meshRefs: backendRefsOf(route, cluster)?.filter(isMeshEndpoints) ?? [] }))
    .filter(({ meshRefs }) => meshRefs.length > 0);
}

/** The names of the clusters of those rules of a route that have MeshEndpoints and other backends. */
export function mixedClusterNames(route: Route): readonly string[] {
  return clustersOf(route)
    .filter(cluster => {
      const refs = backendRefsOf(route, cluster) ?? [];
      return refs.some(isMeshEndpoints) && !refs.every(isMeshEndpoints);
    })
    .map(({ text }) => text);
}

/** The rules of a route as Envoy clusters serve them: each by itself over HTTP, else all as one. */
export function rulesOf({ kind, rules }: Route): readonly EnvoyClusterName['rule'][] {
  return isOverHttp(kind) ? [...rules.keys()] : ['only'];
}

function clustersOf(route: Route): readonly EnvoyClusterName[] {
  if (isAnchor(route)) return [];
  const { kind, metadata } = route;
  const { namespace = '', name } = metadata;
  return rulesOf(route).map(rule => {
    const text = formatEnvoyClusterName(kind, namespace, name, rule);
    return { text, kind, namespace, name, rule };
  });
}

function resolveRule(
  resources: TrafficResources,
  route: Route,
  cluster: EnvoyClusterName,
): ResolvedRule | undefined {
  const refs = backendRefsOf(route, cluster);
  const meshRefs = refs?.filter(isMeshEndpoints);
  if (!refs || !meshRefs?.length) return resolveOtherBackend(resources, route, cluster);
  const otherRefs = refs.filter(each => !isMeshEndpoints(each) && each.ref.weight > 0);
  const isMixed = otherRefs.length > 0;
  const canMix = otherRefs.every(each => canMixWith(resources, each) || isServedApart(resources, each));
  const conflicts = isMixed ? [withDefaultProtocol, ...CONFLICTS] : CONFLICTS;
  const { kept, unused } =
    isMixed && !canMix ? unusedMixed(meshRefs) : resolveBackendRefs(resources, meshRefs, conflicts);
  const protocol = kept[0]?.protocol ?? defaultProtocol(route.kind);
  const policy = policyOf(resources, route, cluster.rule);
  // A cluster of one backend has no traffic.
  const levels = cluster.backend === undefined ? levelsOf(resources, policy, { refs, protocol }) : undefined;
  const shares = ruleSharesOf(resources, cluster, refs);
  return {
    cluster,
    protocol,
    isMixed,
    otherBackends: canMix ? otherBackendsIn(resources, cluster, refs, shares) : [],
    backends: meshRefs.map(({ index, ref, place }) => ({
      index,
      ref,
      place,
      endpoints: kept.filter(({ backendRef }) => backendRef.index === index).map(({ resolved }) => resolved),
    })),
    ...(policy && { policy }),
    ...(levels && { levels }),
    ...(shares && { shares }),
    standby: canMix ? standbyOf(resources, refs, conflicts) : NO_STANDBY,
    unused: [...unused, ...mirroredRule(route, cluster, meshRefs), ...withIgnoredFilters(meshRefs)],
  };
}

/** A Service or Backend in a rule that is divided here: it has a cluster of its own. */
function resolveOtherBackend(
  resources: TrafficResources,
  route: Route,
  cluster: EnvoyClusterName,
): ResolvedRule | undefined {
  const { backend, ...parts } = cluster;
  const text = ruleOfBackendCluster(cluster.text);
  if (backend === undefined || text === undefined) return undefined;
  const whole = { ...parts, text };
  const refs = backendRefsOf(route, whole) ?? [];
  const shares = ruleSharesOf(resources, whole, refs);
  if (!shares?.others || shares.isApart) return undefined;
  return {
    cluster,
    protocol: defaultProtocol(route.kind),
    isMixed: false,
    otherBackends: otherBackendsOf(resources, whole, refs).filter(({ index }) => index === backend),
    backends: [],
    standby: NO_STANDBY,
    unused: [],
  };
}

/** Where a backend is away, Envoy Gateway routes to these by clusters of its own, and to MeshEndpoints alone by this one. */
function otherBackendsIn(
  resources: TrafficResources,
  cluster: EnvoyClusterName,
  refs: readonly RouteBackendRef[],
  shares: RuleShares | undefined,
): readonly OtherBackend[] {
  const others = otherBackendsOf(resources, cluster, refs);
  const isAway = (each: RouteBackendRef) => each.ref.weight > 0 && !isResolved(resources, each, cluster.rule);
  return shares && refs.some(isAway) ? others.map(each => ({ ...each, endpoints: [] })) : others;
}

type Step = (candidates: readonly Candidate[]) => Filtered;

/** What the endpoints of one Envoy cluster must have in common. */
const CONFLICTS: readonly Step[] = [
  withoutDuplicateAddresses,
  withoutDuplicateNames,
  withSameProtocol,
  withinTlsLimits,
];

/** Resolves each backendRef by itself, and then drops endpoints that conflict with others of the rule. */
function resolveBackendRefs(
  resources: TrafficResources,
  meshRefs: readonly RouteBackendRef[],
  conflicts: readonly Step[],
): Filtered {
  const resolved = meshRefs.map(ref => resolveBackendRef(resources, ref));
  const unused = resolved.flatMap(each => each.unused);
  let kept: readonly Candidate[] = resolved.flatMap(each => each.kept);
  const caBundles: Step = candidates => withValidCaBundles(candidates, pem => resources.caBundle(pem));
  for (const step of [caBundles, ...conflicts]) {
    const filtered = step(kept);
    kept = filtered.kept;
    unused.push(...filtered.unused);
  }
  return { kept, unused };
}

const NO_STANDBY: Standby = { endpoints: [], services: [] };

/** As with the weight 1; those with a weight come first, so that they are kept where two conflict. */
function standbyOf(
  resources: TrafficResources,
  refs: readonly RouteBackendRef[],
  conflicts: readonly Step[],
): Standby {
  const idle = refs
    .filter(({ ref }) => ref.weight === 0)
    .map(each => ({ ...each, ref: { ...each.ref, weight: 1 } }));
  if (idle.length === 0) return NO_STANDBY;
  const mesh = [...refs.filter(({ ref }) => ref.weight > 0), ...idle].filter(isMeshEndpoints);
  const { kept } = idle.some(isMeshEndpoints) ? resolveBackendRefs(resources, mesh, conflicts) : { kept: [] };
  return {
    endpoints: kept.filter(({ backendRef }) => idle.includes(backendRef)).map(({ resolved }) => resolved),
    services: idle.filter(each => isWithoutTls(resources, each)).map(({ ref }) => socketNameOf(ref)),
  };
}

/** A rule with backends that the extension server cannot serve keeps the cluster and endpoints of Envoy Gateway. */
function unusedMixed(meshRefs: readonly RouteBackendRef[]): Filtered {
  const weighted = meshRefs.filter(({ ref }) => ref.weight > 0);
  return { kept: [], unused: weighted.map(backendRef => unusedReference.mixedBackends(backendRef)) };
}

/** The backendRefs of a rule that Envoy Gateway refuses, because it mirrors requests to MeshEndpoints. */
function mirroredRule(
  route: Route,
  { rule }: EnvoyClusterName,
  meshRefs: readonly RouteBackendRef[],
): readonly UnusedBackend[] {
  const mirror = rule === 'only' ? undefined : route.rules[rule]?.mirrors.find(isMeshBackend);
  if (!mirror) return [];
  return meshRefs
    .filter(({ ref }) => ref.weight > 0)
    .map(backendRef => unusedReference.mirrored(backendRef, mirror));
}

/** What a route mirrors to MeshEndpoints, by which Envoy Gateway refuses the rule before it calls the hook. */
export function refusedMirrors(route: Route): readonly UnusedBackend[] {
  const about = refTo(route);
  return route.rules.flatMap(({ mirrors }, rule) =>
    mirrors.filter(isMeshBackend).map(ref => {
      const place = { about, at: ['spec', 'rules', rule, 'filters'] };
      return unusedReference.mirrored({ ref, place }, ref);
    }),
  );
}

/** The backendRefs with filters that cannot be applied to MeshEndpoints. */
function withIgnoredFilters(meshRefs: readonly RouteBackendRef[]): readonly UnusedBackend[] {
  return meshRefs.flatMap(backendRef => {
    const { weight, filters } = backendRef.ref;
    const [first] = filters?.others ?? [];
    return weight > 0 && first !== undefined ? [unusedReference.filterIgnored(backendRef, first)] : [];
  });
}
