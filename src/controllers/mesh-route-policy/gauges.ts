import { findCondition } from '../../api/conditions.ts';
import type { ReadResources } from '../../store/resources.ts';
import type { GaugeReaders } from '../../telemetry/metric-recorder.ts';
import type { routePolicyMetrics } from '../../telemetry/metrics.ts';

const ACCEPTED = { True: 'true', False: 'false', Unknown: 'unknown' } as const;

/**
 * Reads how many MeshRoutePolicies are accepted from their status; returns the function that ends it. Only the leader calls it,
 * because every replica has the same status.
 */
export function readRoutePolicyGauges(
  read: Pick<ReadResources, 'list'>,
  metrics: GaugeReaders<typeof routePolicyMetrics>,
): () => void {
  return metrics.readGauge('routePolicies', () => {
    const statuses = read
      .list('MeshRoutePolicy')
      // The first ancestor is one with a problem, if any has one.
      .map(({ status }) => findCondition(status?.ancestors?.[0]?.conditions, 'Accepted'))
      .map(condition => ACCEPTED[condition?.status ?? 'Unknown']);
    return Object.values(ACCEPTED).map(accepted => ({
      labels: { accepted },
      value: statuses.filter(each => each === accepted).length,
    }));
  });
}
