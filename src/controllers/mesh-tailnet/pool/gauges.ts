import type { ReadResources } from '../../../store/resources.ts';
import type { poolMetrics } from '../../../telemetry/metrics.ts';
import type { GaugeReaders } from '../../../telemetry/metric-recorder.ts';

/**
 * Reads the gauges of all pools from the status of MeshTailnets, so that those of a deleted one disappear with it; returns
 * the function that ends it. Only the leader calls it, because every replica has the same status.
 */
export function readPoolGauges(
  read: Pick<ReadResources, 'list'>,
  metrics: GaugeReaders<typeof poolMetrics>,
): () => void {
  const ends = [
    metrics.readGauge('poolMembers', () =>
      read.list('MeshTailnet').flatMap(({ metadata: { name: tailnet }, status }) => {
        const { ready = 0, desired } = status?.pool ?? {};
        if (desired === undefined) return [];
        return [
          { labels: { tailnet, state: 'ready' as const }, value: ready },
          // While a pool scales down, more may be ready than desired.
          { labels: { tailnet, state: 'not_ready' as const }, value: Math.max(0, desired - ready) },
        ];
      }),
    ),
    metrics.readGauge('orphans', () =>
      read.list('MeshTailnet').flatMap(({ metadata: { name: tailnet }, status }) => {
        const value = status?.devices?.orphaned;
        return value === undefined ? [] : [{ labels: { tailnet }, value }];
      }),
    ),
  ];
  return () => ends.forEach(end => end());
}
