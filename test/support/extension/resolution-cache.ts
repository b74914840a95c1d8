import type { ResolutionCache } from '../../../src/extension/resolution-cache.ts';

const WEB = 'httproute/default/web/rule/0';
const GATEWAY = 'default/public';

/** Counts notifications. */
export class Counter {
  count = 0;
  invalidated(): void {
    this.count++;
  }
}

/** How Envoys of a Gateway reach the endpoints of a cluster. */
export function addressesIn(
  cache: ResolutionCache,
  cluster = WEB,
  gateway = GATEWAY,
): readonly string[] | undefined {
  const found = cache.snapshot(cluster, gateway);
  return found?.assignment.localities.flatMap(({ endpoints }) =>
    endpoints.map(({ address, port, proxy }) => `${proxy?.address ?? 'direct'} ${address}:${port}`),
  );
}
