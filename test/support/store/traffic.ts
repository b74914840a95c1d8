import { clusterEncoding } from '../../../src/extension/envoy-cluster/encoding-version.ts';
import { createResolutionCache } from '../../../src/extension/resolution-cache.ts';
import type { ResolutionCache } from '../../../src/extension/resolution-cache.ts';
import type { ReadResources } from '../../../src/store/resources.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { trafficValues } from '../../../src/store/traffic/values.ts';
import type { TrafficOptions, TrafficValues } from '../../../src/store/traffic/values.ts';

/** How traffic is derived, all with defaults. */
export type DerivedOptions = Partial<Omit<TrafficOptions, 'clusterEncoding'>> & {
  /** The address that Envoys dial. */
  readonly edsTarget?: string;
};

/** What is derived from a store, as processes derive it. */
export type DerivedTraffic = { readonly tracking: Tracking; readonly traffic: TrafficValues };

/** Derives traffic from a store with the `trafficIndexes`. */
export function derivedFrom(
  read: ReadResources,
  { edsTarget = '127.0.0.1:5005', ...options }: DerivedOptions = {},
): DerivedTraffic {
  const tracking = new Tracking(read);
  const encoding = {
    dataPath: 'Proxy',
    settingsFrom: 'MeshBinding',
    clusterEncoding: clusterEncoding(edsTarget),
  } as const;
  return { tracking, traffic: trafficValues(tracking, { ...encoding, ...options }) };
}

/** The cache of an extension server over a store. */
export function cacheOver(read: ReadResources, options: DerivedOptions = {}): ResolutionCache {
  const { traffic } = derivedFrom(read, options);
  return createResolutionCache(read, traffic, options.dataPath ?? 'Proxy');
}
