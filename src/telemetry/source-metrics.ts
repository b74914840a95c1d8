import type { MetricDeclarations } from './metrics.ts';

const KIND = { kind: [] } as const;

/** What a process that reads from an API server tells of what it reads. */
export const sourceMetrics = {
  sourceLists: {
    name: 'mesh_gateway_source_lists_total',
    help: 'Lists that were read to their end, by kind',
    type: 'counter',
    labels: KIND,
  },
  sourceWatches: {
    name: 'mesh_gateway_source_watches_total',
    help: 'Watches that were begun, by kind',
    type: 'counter',
    labels: KIND,
  },
  sourceEvents: {
    name: 'mesh_gateway_source_events_total',
    help: 'Changes that watches told, by kind',
    type: 'counter',
    labels: KIND,
  },
  sourceFailures: {
    name: 'mesh_gateway_source_failures_total',
    help: 'Lists and watches that did not end well, by kind and reason',
    type: 'counter',
    labels: {
      ...KIND,
      reason: [
        ...['Unauthorized', 'Forbidden', 'NotFound', 'Conflict', 'Expired', 'Invalid'],
        ...['Busy', 'Failed', 'Unreachable', 'Garbled', 'Aborted', 'Silent'],
      ],
    },
  },
  sourceObjects: {
    name: 'mesh_gateway_source_objects',
    help: 'Objects that are known, by kind',
    type: 'gauge',
    labels: KIND,
  },
  sourceUndecodable: {
    name: 'mesh_gateway_source_undecodable_objects',
    help: 'Objects that are there and cannot be read, by kind',
    type: 'gauge',
    labels: KIND,
  },
} as const satisfies MetricDeclarations;
