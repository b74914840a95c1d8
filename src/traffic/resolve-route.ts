import type { Route } from '../api/gateway-api.ts';
import { withFewTlsSettings, withOneSpeech, withReadableAuthorities, withUsualSpeech } from './agreement.ts';
import { candidatesOf } from './resolve-backend-ref.ts';
import type { Candidate, Sifted } from './resolve-backend-ref.ts';
import { formatClusterName } from './envoy-cluster-name.ts';
import type { ClusterName } from './envoy-cluster-name.ts';
import type { Declared } from './traffic-resources.ts';
import { withoutDuplicates, withoutSameName } from './rule-conflicts.ts';
import { isResolved, isServable, othersOf } from './other-backends.ts';
import { isMesh, referencesOf } from './backend-refs.ts';
import type { Reference } from './backend-refs.ts';
import type { MeshRule, Unused } from './rule.ts';
import { usualSpeech } from './upstream-protocol.ts';
import { refuseReference } from './unused.ts';

/**
 * What the rule behind a cluster means, or nothing where the cluster is to be left alone: the route is not declared, has
 * no such rule, or that rule has no MeshEndpoints among its backends.
 */
export function meshRuleOf(declared: Declared, cluster: ClusterName): MeshRule | undefined {
  const { kind, namespace, name } = cluster;
  const route = declared.route({ kind, namespace, name });
  return route && ruleOf(declared, route, cluster);
}

/** All rules of a route that have MeshEndpoints among their backends. */
export function meshRulesOf(declared: Declared, route: Route): readonly MeshRule[] {
  return rulesOf(route).flatMap(rule => ruleOf(declared, route, clusterOf(route, rule)) ?? []);
}

/** The names of the clusters of a route's rules that have backends of ours and of others. */
export function mixedClustersOf(route: Route): readonly string[] {
  return rulesOf(route)
    .map(rule => clusterOf(route, rule))
    .filter(cluster => {
      const references = referencesOf(route, cluster) ?? [];
      return references.some(isMesh) && !references.every(isMesh);
    })
    .map(({ text }) => text);
}

/** The rules by their places; Envoy Gateway makes one of all rules of the kinds below HTTP. */
function rulesOf({ kind, rules }: Route): readonly ClusterName['rule'][] {
  return isOverHttp(kind) ? [...rules.keys()] : ['only'];
}

function isOverHttp(kind: Route['kind']): boolean {
  return kind === 'HTTPRoute' || kind === 'GRPCRoute';
}

function clusterOf(route: Route, rule: ClusterName['rule'], backend?: number): ClusterName {
  const { kind, metadata } = route;
  const { namespace = '', name } = metadata;
  const text = formatClusterName(kind, namespace, name, rule, backend);
  return { text, kind, namespace, name, rule, ...(backend !== undefined && { backend }) };
}

function ruleOf(declared: Declared, route: Route, cluster: ClusterName): MeshRule | undefined {
  const references = referencesOf(route, cluster);
  const ours = references?.filter(isMesh);
  if (!references || !ours?.length) return undefined;
  const foreign = references.filter(each => !isMesh(each) && each.ref.weight > 0);
  const isMixed = foreign.length > 0;
  const isShared = isOverHttp(route.kind) && foreign.every(isServable);
  const { kept, unused } = isMixed ? siftMixed(declared, ours, isShared) : sift(declared, ours, STEPS);
  return {
    cluster,
    speech: kept[0]?.speech ?? usualSpeech(route.kind),
    isMixed,
    others: isShared ? othersOf(declared, cluster, references) : [],
    backends: ours.map(({ index, ref, path }) => ({ index, ref, path, endpoints: endpointsAt(index, kept) })),
    unused: [...unused, ...withoutRequests(declared, route, cluster, ours)],
  };
}

/**
 * Our backends to which Envoy Gateway sends nothing: where a backend of the rule does not resolve or has filters of its
 * own, it gives each a cluster of its own, and sends requests to those only of which it knows endpoints itself.
 */
function withoutRequests(
  declared: Declared,
  route: Route,
  { backend: _, ...rule }: ClusterName,
  ours: readonly Reference[],
): readonly Unused[] {
  if (!isOverHttp(route.kind)) return [];
  const weighted = (referencesOf(route, rule) ?? []).filter(({ ref }) => ref.weight > 0);
  const filtered = weighted.find(({ ref }) => ref.hasFilters);
  const unresolved = weighted.filter(each => !isResolved(declared, each));
  return ours.flatMap(at => {
    if (at.ref.weight === 0 || unresolved.some(({ index }) => index === at.index)) return [];
    if (filtered) return [refuseReference.backendFilters(at, filtered)];
    return unresolved[0] ? [refuseReference.otherBackendMissing(at, unresolved[0])] : [];
  });
}

/** A cluster has the endpoints of Envoy Gateway or ours: of backends that we cannot serve too, it stays as it is. */
function siftMixed(declared: Declared, ours: readonly Reference[], isShared: boolean): Sifted {
  if (isShared) return sift(declared, ours, [withUsualSpeech, ...STEPS]);
  const meant = ours.filter(({ ref }) => ref.weight > 0);
  return { kept: [], unused: meant.map(at => refuseReference.mixedBackends(at)) };
}

type Step = (candidates: readonly Candidate[]) => Sifted;

/** What the endpoints of a rule have to be together. */
const STEPS: readonly Step[] = [withoutDuplicates, withoutSameName, withOneSpeech, withFewTlsSettings];

/** Judges first every endpoint by itself, and then in each step what those before it have left. */
function sift(declared: Declared, ours: readonly Reference[], steps: readonly Step[]): Sifted {
  const found = ours.map(reference => candidatesOf(declared, reference));
  const unused = found.flatMap(each => each.unused);
  let kept: readonly Candidate[] = found.flatMap(each => each.kept);
  const withTrust: Step = candidates => withReadableAuthorities(candidates, pem => declared.trust(pem));
  for (const step of [withTrust, ...steps]) {
    const sifted = step(kept);
    kept = sifted.kept;
    unused.push(...sifted.unused);
  }
  return { kept, unused };
}

function endpointsAt(index: number, kept: readonly Candidate[]) {
  return kept.filter(({ at }) => at.index === index).map(({ usable }) => usable);
}
