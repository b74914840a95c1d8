import { endpointMetrics } from './metrics.ts';
import type { MetricDeclarations } from './metrics.ts';

/** The most keys of metadata that are labels. */
export const MAX_LABEL_KEYS = 8;

/** A key of metadata that can be a label: one that YAML and a list separated by commas hold as it is. */
export const LABEL_KEY = /^[A-Za-z0-9]([-A-Za-z0-9_./]{0,61}[A-Za-z0-9])?$/;

/** The label for a key of metadata, such as metadata_example_com_zone for example.com/zone. */
export function metadataLabel(key: string): string {
  return `metadata_${key.replaceAll(/[^A-Za-z0-9_]/g, '_')}`;
}

/** The first of some keys whose label an earlier one has. */
export function repeatedLabelOf(keys: readonly string[]): string | undefined {
  const labels = keys.map(metadataLabel);
  return keys.find((_, index) => labels.indexOf(labels[index] ?? '') !== index);
}

/** Metrics in which the health of each endpoint also has labels for keys of its metadata. */
export function withMetadataLabels<D extends MetricDeclarations>(metrics: D, keys: readonly string[]): D {
  const { endpointHealthy } = endpointMetrics;
  const added = Object.fromEntries(keys.map(key => [metadataLabel(key), []]));
  const labels = { ...endpointHealthy.labels, ...added };
  return { ...metrics, endpointHealthy: { ...endpointHealthy, labels } };
}
