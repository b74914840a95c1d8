import { oldestOf } from '../../api/objects/oldest.ts';
import type { ReadResources } from '../../store/resources.ts';
import type { GaugeReaders } from '../../telemetry/metric-recorder.ts';
import type { vipServiceMetrics } from '../../telemetry/metrics.ts';

const STATES = {
  Registered: 'registered',
  Pending: 'pending',
  Failed: 'failed',
  Conflict: 'conflict',
  NotSupported: 'not_supported',
} as const;

/**
 * Reads how many VIP services are in which state from the status of MeshEndpoints, by tailnet; returns the function that ends
 * it. Only the leader calls it, because every replica has the same status.
 */
export function readVipServiceGauges(
  read: Pick<ReadResources, 'list'>,
  metrics: GaugeReaders<typeof vipServiceMetrics>,
): () => void {
  return metrics.readGauge('services', () => {
    const tailnets = read.list('MeshTailnet');
    const endpoints = read.list('MeshEndpoints');
    return tailnets.flatMap(({ metadata, spec: { tailnet: domain } }) => {
      const ofDomain = ({ spec }: { readonly spec: { readonly tailnet: string } }) => spec.tailnet === domain;
      if (oldestOf(tailnets.filter(ofDomain))?.metadata.name !== metadata.name) return [];
      const listed = endpoints.filter(ofDomain).flatMap(({ status }) => status?.vipServices ?? []);
      const statuses = listed.map(({ status }) => STATES[status]);
      return Object.values(STATES).map(state => ({
        labels: { tailnet: metadata.name, state },
        value: statuses.filter(each => each === state).length,
      }));
    });
  });
}
