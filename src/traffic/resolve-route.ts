import { resolveBackendRef } from './resolve-backend-ref.ts';
import type { ResolvedEndpoint, Candidate, Filtered } from './resolve-backend-ref.ts';
import { unusedReference } from './unused.ts';
import type { UnusedBackend } from './unused.ts';
import { defaultProtocol } from './upstream-protocol.ts';
import type { UpstreamProtocol } from './upstream-protocol.ts';
import type { BackendRef, Route } from '../api/gateway-api.ts';
import { formatEnvoyClusterName } from './envoy-cluster-name.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';
import { isResolved, isServiceOrBackend, otherBackendsOf } from './other-backends.ts';
import type { OtherBackend } from './other-backends.ts';
import {
  withinTlsLimits,
  withSameProtocol,
  withValidCaBundles,
  withDefaultProtocol,
  withoutDuplicateAddresses,
  withoutDuplicateNames,
} from './rule-conflicts.ts';
import type { TrafficResources } from './traffic-resources.ts';
import { isMeshEndpoints, backendRefsOf } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';

/**
 * What the rule behind a cluster means, or nothing where the cluster is to be left alone: the route is not declared, has
 * no such rule, or that rule has no MeshEndpoints among its backends.
 */
export function resolveEnvoyCluster(
  resources: TrafficResources,
  cluster: EnvoyClusterName,
): ResolvedRule | undefined {
  const { kind, namespace, name } = cluster;
  const route = resources.route({ kind, namespace, name });
  return route && resolveRule(resources, route, cluster);
}

/** All rules of a route that have MeshEndpoints among their backends. */
export function resolveRoute(resources: TrafficResources, route: Route): readonly ResolvedRule[] {
  return rulesOf(route).flatMap(rule => resolveRule(resources, route, clusterOf(route, rule)) ?? []);
}

/** The names of the clusters of a route's rules that have backends of ours and of others. */
export function mixedClusterNames(route: Route): readonly string[] {
  return rulesOf(route)
    .map(rule => clusterOf(route, rule))
    .filter(cluster => {
      const references = backendRefsOf(route, cluster) ?? [];
      return references.some(isMeshEndpoints) && !references.every(isMeshEndpoints);
    })
    .map(({ text }) => text);
}

/** The rules by their places; Envoy Gateway makes one of all rules of the kinds below HTTP. */
function rulesOf({ kind, rules }: Route): readonly EnvoyClusterName['rule'][] {
  return isOverHttp(kind) ? [...rules.keys()] : ['only'];
}

function isOverHttp(kind: Route['kind']): boolean {
  return kind === 'HTTPRoute' || kind === 'GRPCRoute';
}

function clusterOf(route: Route, rule: EnvoyClusterName['rule'], backend?: number): EnvoyClusterName {
  const { kind, metadata } = route;
  const { namespace = '', name } = metadata;
  const text = formatEnvoyClusterName(kind, namespace, name, rule, backend);
  return { text, kind, namespace, name, rule, ...(backend !== undefined && { backend }) };
}

function resolveRule(
  resources: TrafficResources,
  route: Route,
  cluster: EnvoyClusterName,
): ResolvedRule | undefined {
  const references = backendRefsOf(route, cluster);
  const ours = references?.filter(isMeshEndpoints);
  if (!references || !ours?.length) return undefined;
  const foreign = references.filter(each => !isMeshEndpoints(each) && each.ref.weight > 0);
  const isMixed = foreign.length > 0;
  const isShared = isOverHttp(route.kind) && foreign.every(isServiceOrBackend);
  const { kept, unused } = isMixed
    ? resolveMixed(resources, ours, isShared)
    : resolveBackendRefs(resources, ours, STEPS);
  return {
    cluster,
    protocol: kept[0]?.protocol ?? defaultProtocol(route.kind),
    isMixed,
    otherBackends: isShared ? otherBackendsOf(resources, cluster, references) : [],
    backends: ours.map(({ index, ref, path }) => ({ index, ref, path, endpoints: endpointsAt(index, kept) })),
    unused: [...unused, ...withoutWeightedCluster(resources, route, cluster, ours)],
  };
}

/**
 * Our backends to which Envoy Gateway sends nothing: where a backend of the rule does not resolve or has filters of its
 * own, it gives each a cluster of its own, and sends requests to those only of which it knows endpoints itself.
 */
function withoutWeightedCluster(
  resources: TrafficResources,
  route: Route,
  { backend: _, ...rule }: EnvoyClusterName,
  ours: readonly RouteBackendRef[],
): readonly UnusedBackend[] {
  if (!isOverHttp(route.kind)) return [];
  const weighted = (backendRefsOf(route, rule) ?? []).filter(({ ref }) => ref.weight > 0);
  const filtered = weighted.find(({ ref }) => ref.hasFilters);
  const unresolved = weighted.filter(each => !isResolved(resources, each));
  return ours.flatMap(at => {
    if (at.ref.weight === 0 || unresolved.some(({ index }) => index === at.index)) return [];
    if (filtered) return [unusedReference.backendFilters(at, filtered)];
    return unresolved[0] ? [unusedReference.otherBackendMissing(at, unresolved[0])] : [];
  });
}

/** A cluster has the endpoints of Envoy Gateway or ours: of backends that we cannot serve too, it stays as it is. */
function resolveMixed(
  resources: TrafficResources,
  ours: readonly RouteBackendRef[],
  isShared: boolean,
): Filtered {
  if (isShared) return resolveBackendRefs(resources, ours, [withDefaultProtocol, ...STEPS]);
  const meant = ours.filter(({ ref }) => ref.weight > 0);
  return { kept: [], unused: meant.map(at => unusedReference.mixedBackends(at)) };
}

type Step = (candidates: readonly Candidate[]) => Filtered;

/** What the endpoints of a rule have to be together. */
const STEPS: readonly Step[] = [
  withoutDuplicateAddresses,
  withoutDuplicateNames,
  withSameProtocol,
  withinTlsLimits,
];

/** Judges first every endpoint by itself, and then in each step what those before it have left. */
function resolveBackendRefs(
  resources: TrafficResources,
  ours: readonly RouteBackendRef[],
  steps: readonly Step[],
): Filtered {
  const found = ours.map(reference => resolveBackendRef(resources, reference));
  const unused = found.flatMap(each => each.unused);
  let kept: readonly Candidate[] = found.flatMap(each => each.kept);
  const withTrust: Step = candidates => withValidCaBundles(candidates, pem => resources.caBundle(pem));
  for (const step of [withTrust, ...steps]) {
    const sifted = step(kept);
    kept = sifted.kept;
    unused.push(...sifted.unused);
  }
  return { kept, unused };
}

function endpointsAt(index: number, kept: readonly Candidate[]) {
  return kept.filter(({ at }) => at.index === index).map(({ resolved: usable }) => usable);
}

/** One reference of a rule to a MeshEndpoints. */
export type ResolvedBackend = {
  /** Its position among all references of the rule, by which Envoy Gateway names its locality. */
  readonly index: number;
  readonly ref: BackendRef;
  /** Where the reference stands in the route, such as spec.rules[0].backendRefs[1]. */
  readonly path: string;
  readonly endpoints: readonly ResolvedEndpoint[];
};

/** What the rule behind a cluster means: where its traffic may go, and where it may not and why. */
export type ResolvedRule = {
  readonly cluster: EnvoyClusterName;
  /** How Envoy speaks to all endpoints; of a rule without any that can be used, what its kind of route would take. */
  readonly protocol: UpstreamProtocol;
  /** Whether the rule has backends that are not ours, with a weight above 0. */
  readonly isMixed: boolean;
  /** Those of them that we serve beside ours. */
  readonly otherBackends: readonly OtherBackend[];
  /** In the order of the references; those without usable endpoints too. */
  readonly backends: readonly ResolvedBackend[];
  readonly unused: readonly UnusedBackend[];
};
