import type { Unused } from '../../traffic/rule.ts';

/** What gets no traffic of a cluster; nothing where that is not known yet. */
export type UnusedOfCluster = { readonly cluster: string; readonly unused?: readonly Unused[] | undefined };

/** What gets no traffic of all clusters, counted by its reason, and once for all Gateways. */
export function unresolvedOf(
  all: Iterable<UnusedOfCluster>,
): readonly { readonly labels: { readonly reason: string }; readonly value: number }[] {
  const seen = new Set<string>();
  const counts = new Map<string, number>();
  for (const { cluster, unused } of all) {
    for (const { reason, object, endpoint = '' } of unused ?? []) {
      const what = `${cluster} ${reason} ${object} ${endpoint}`;
      if (seen.has(what)) continue;
      seen.add(what);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
  }
  return [...counts].map(([reason, value]) => ({ labels: { reason }, value }));
}
