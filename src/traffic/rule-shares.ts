import { isOverHttp } from '../api/key.ts';
import type { BackendFilters } from '../api/objects/header-filters.ts';
import { isMeshEndpoints } from './backend-refs.ts';
import type { RouteBackendRef } from './backend-refs.ts';
import { formatBackendCluster } from './envoy-cluster-name.ts';
import type { EnvoyClusterName } from './envoy-cluster-name.ts';
import { canMixWith, isResolved, isServedApart } from './other-backends.ts';
import type { TrafficResources } from './traffic-resources.ts';

/**
 * How the requests of a rule are shared where each backend has a cluster of its own. Envoy Gateway divides a rule so if a backend
 * does not resolve, a Service has filters or prefers its zone, or a policy prefers zones, among others, and then routes only to
 * backends whose endpoints it knows.
 */
export type RuleShares = {
  /** The sum of the weights of all backends. */
  readonly total: number;
  /** The MeshEndpoints that exist and to which the route may refer. */
  readonly mesh: readonly MeshShare[];
  /** The other backends, where MeshEndpoints are the reason to divide the rule: Envoy Gateway does not do it for these. */
  readonly others?: readonly Share[];
  /** Whether the cluster of the rule stays as Envoy Gateway makes it, because it alone can serve the other backends. */
  readonly isApart?: true;
};

/** The cluster and the weight of a backend. */
type Share = { readonly cluster: string; readonly weight: number };

/** With the filters of its backendRef. */
export type MeshShare = Share & { readonly filters?: Omit<BackendFilters, 'others'> };

/** Undefined for a rule that is not over HTTP, or of which every backend has weight 0. */
export function ruleSharesOf(
  resources: TrafficResources,
  cluster: EnvoyClusterName,
  refs: readonly RouteBackendRef[],
): RuleShares | undefined {
  if (!isOverHttp(cluster.kind) || cluster.backend !== undefined) return undefined;
  const weighted = refs.filter(({ ref }) => ref.weight > 0);
  const resolved = weighted.filter(each => isResolved(resources, each, cluster.rule));
  const shareOf = ({ index, ref: { weight } }: RouteBackendRef): Share => {
    return { cluster: formatBackendCluster(cluster, index), weight };
  };
  const mesh = resolved.filter(isMeshEndpoints).map((each): MeshShare => {
    const { request, response } = each.ref.filters ?? {};
    const filters = { ...(request && { request }), ...(response && { response }) };
    return { ...shareOf(each), ...((request ?? response) && { filters }) };
  });
  const areFiltered = mesh.some(({ filters }) => filters);
  if (weighted.length === 0) return undefined;
  const others = weighted.filter(each => !isMeshEndpoints(each));
  const isApart = others.some(each => isServedApart(resources, each));
  const isDividedHere =
    (areFiltered || isApart) &&
    resolved.length === weighted.length &&
    others.every(each => each.ref.filters === undefined && (isApart || canMixWith(resources, each)));
  const together = { cluster: cluster.text, weight: sumOf(others) };
  return {
    total: sumOf(weighted),
    mesh,
    ...(isDividedHere && { others: isApart ? [together] : others.map(shareOf) }),
    ...(isApart && { isApart }),
  };
}

function sumOf(refs: readonly RouteBackendRef[]): number {
  return refs.reduce((sum, { ref }) => sum + ref.weight, 0);
}

/** Whether one MeshEndpoints gets all requests of the rule. */
export function areUndivided({ total, mesh: [first, ...others] }: RuleShares): boolean {
  return first?.weight === total && others.length === 0;
}

/** The clusters that a rule needs beside its own: Envoy Gateway makes none of these where it does not divide the rule. */
export function clustersBeside(rule: string, shares: RuleShares | undefined): readonly string[] {
  if (!shares?.others) return [];
  const all = [...shares.mesh, ...shares.others];
  return all.length < 2 ? [] : all.map(({ cluster }) => cluster).filter(cluster => cluster !== rule);
}
