import { findCondition } from '../../api/conditions.ts';
import type { ReadResources } from '../../store/resources.ts';
import type { GaugeReaders } from '../../telemetry/metric-recorder.ts';
import type { meshGatewayMetrics } from '../../telemetry/metrics.ts';

const ACCEPTED = { True: 'true', False: 'false', Unknown: 'unknown' } as const;

/**
 * Reads how many MeshGateways are accepted from their status; returns the function that ends it. Only the leader calls it,
 * because every replica has the same status.
 */
export function readMeshGatewayGauges(
  read: Pick<ReadResources, 'list'>,
  metrics: GaugeReaders<typeof meshGatewayMetrics>,
): () => void {
  return metrics.readGauge('meshGateways', () => {
    const statuses = read
      .list('MeshGateway')
      .map(({ status }) => ACCEPTED[findCondition(status?.conditions, 'Accepted')?.status ?? 'Unknown']);
    return Object.values(ACCEPTED).map(accepted => ({
      labels: { accepted },
      value: statuses.filter(each => each === accepted).length,
    }));
  });
}
