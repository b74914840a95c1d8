import type { UnusedBackend } from '../../traffic/unused.ts';

/** What gets no traffic of a cluster; nothing where that is not known yet. */
export type UnusedOfCluster = {
  readonly cluster: string;
  readonly unused?: readonly UnusedBackend[] | undefined;
};

/** What gets no traffic of all clusters, counted by its reason, and once for all Gateways and all clusters of a rule. */
export function unresolvedOf(
  all: Iterable<UnusedOfCluster>,
): readonly { readonly labels: { readonly reason: string }; readonly value: number }[] {
  const seen = new Set<string>();
  const counts = new Map<string, number>();
  for (const { cluster, unused } of all) {
    for (const { reason, object, endpoint = '' } of unused ?? []) {
      const what = `${ruleOf(cluster)} ${reason} ${object} ${endpoint}`;
      if (seen.has(what)) continue;
      seen.add(what);
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
    }
  }
  return [...counts].map(([reason, value]) => ({ labels: { reason }, value }));
}

/** A backend may have a cluster of its own, and its rule one too. */
function ruleOf(cluster: string): string {
  return cluster.replace(/\/backend\/\d+$/, '');
}
