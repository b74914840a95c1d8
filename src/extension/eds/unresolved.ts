import type { Served } from './served.ts';

/** What gets no traffic of all clusters that are followed, counted by its reason, and once for all Gateways. */
export function unresolvedOf(
  all: Iterable<Served>,
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
