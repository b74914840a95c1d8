import type { Kinds, MeshEndpoint } from '../../api/generated/types.ts';
import { discoveredEntriesOf, discovers, endpointsOf } from '../../api/objects/endpoints.ts';
import { inOrderOfKeys } from '../../api/objects/references.ts';
import type { ReadResources } from '../../store/resources.ts';
import { metadataLabel } from '../../telemetry/endpoint-metrics.ts';
import type { endpointMetrics } from '../../telemetry/metrics.ts';
import type { GaugeReaders } from '../../telemetry/metric-recorder.ts';
import { MAX_ENDPOINT_SERIES } from '../../api/shares.ts';
import { inTurns } from '../../api/turns.ts';
import { oldestOf } from '../../api/objects/oldest.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];

/** A checked endpoint with its object. */
type Checked = { readonly object: MeshEndpoints; readonly endpoint: MeshEndpoint };

/**
 * Reads the gauges of endpoints from the status of MeshEndpoints, so that those of a deleted one disappear with it; returns
 * the function that ends it. The metadata with `labelKeys` is in labels. Only the leader calls it, because every replica has the same status.
 */
export function readEndpointGauges(
  read: Pick<ReadResources, 'list'>,
  metrics: GaugeReaders<typeof endpointMetrics>,
  labelKeys: readonly string[] = [],
): () => void {
  const ends = [
    metrics.readGauge('endpointHealthy', () =>
      shown(checkedEndpoints(read)).map(({ object, endpoint: { name: endpoint, metadata = {} } }) => {
        const { name, namespace = '' } = object.metadata;
        const entry = object.status?.endpoints?.find(entry => entry.name === endpoint);
        const labels = { ...metadataLabels(metadata, labelKeys), namespace, name, endpoint };
        return { labels, value: Number(entry?.status === 'Healthy') };
      }),
    ),
    metrics.readGauge('endpointsNotShown', () => [
      { labels: {}, value: Math.max(0, checkedEndpoints(read).length - MAX_ENDPOINT_SERIES) },
    ]),
    metrics.readGauge('endpoints', () => endpointTotals(read)),
    metrics.readGauge('discoveredEndpoints', () =>
      shown(
        inOrder(read)
          .filter(discovers)
          .map(object => ({ object })),
      ).map(({ object }) => {
        const { name, namespace = '' } = object.metadata;
        return { labels: { namespace, name }, value: discoveredEntriesOf(object).length };
      }),
    ),
  ];
  return () => ends.forEach(end => end());
}

function checkedEndpoints(read: Pick<ReadResources, 'list'>): readonly Checked[] {
  return inOrder(read).flatMap(object =>
    endpointsOf(object)
      .filter(({ healthCheck }) => healthCheck?.enabled)
      .map(endpoint => ({ object, endpoint })),
  );
}

/** Those that have a series of their own. */
function shown<T extends Pick<Checked, 'object'>>(all: readonly T[]): readonly T[] {
  return inTurns(all, ({ object }) => object.metadata.namespace ?? '').slice(0, MAX_ENDPOINT_SERIES);
}

/** The label of a key that an endpoint lacks is empty, which Prometheus takes for none. */
function metadataLabels(
  metadata: Readonly<Record<string, string>>,
  keys: readonly string[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(keys.map(key => [metadataLabel(key), metadata[key] ?? '']));
}

/** In an order, so that the same ones are always shown. */
function inOrder(read: Pick<ReadResources, 'list'>): readonly MeshEndpoints[] {
  return inOrderOfKeys(read.list('MeshEndpoints'));
}

/** The label is empty for objects without a MeshTailnet. */
function endpointTotals(read: Pick<ReadResources, 'list'>) {
  const tailnets = read.list('MeshTailnet');
  const totals = new Map<string, { healthy: number; unhealthy: number }>();
  for (const { spec, status } of read.list('MeshEndpoints')) {
    const tailnet =
      oldestOf(tailnets.filter(each => each.spec.tailnet === spec.tailnet))?.metadata.name ?? '';
    const total = totals.get(tailnet) ?? { healthy: 0, unhealthy: 0 };
    totals.set(tailnet, total);
    for (const entry of status?.endpoints ?? [])
      total[entry.status === 'Healthy' ? 'healthy' : 'unhealthy']++;
  }
  return [...totals].flatMap(([tailnet, { healthy, unhealthy }]) => [
    { labels: { tailnet, status: 'healthy' as const }, value: healthy },
    { labels: { tailnet, status: 'unhealthy' as const }, value: unhealthy },
  ]);
}
