/**
 * The values that a label has: a closed list, each of which is there at zero from the start, or an empty list where
 * only whoever makes the registry knows them.
 */
type LabelValues = readonly string[];

/** A metric as data: what is measured, under which name, and by what it is told apart. */
export type MetricDeclaration = {
  readonly name: string;
  readonly help: string;
  readonly labels: Readonly<Record<string, LabelValues>>;
} & (
  | { readonly type: 'counter' }
  | { readonly type: 'gauge' }
  | { readonly type: 'histogram'; readonly buckets: readonly number[] }
);

/** Metrics by the names under which code records them. */
export type MetricDeclarations = Readonly<Record<string, MetricDeclaration>>;

const CONTROLLER = { controller: [] } as const;
const QUEUE = { name: [] } as const;

/** What the loop of each controller tells; names, labels and buckets are those of controller-runtime. */
export const controllerMetrics = {
  reconciles: {
    name: 'controller_runtime_reconcile_total',
    help: 'Reconciliations per controller, by how they ended',
    type: 'counter',
    labels: { ...CONTROLLER, result: ['success', 'error', 'requeue', 'requeue_after'] },
  },
  reconcileErrors: {
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Reconciliations per controller that ended with an error',
    type: 'counter',
    labels: CONTROLLER,
  },
  reconcileSeconds: {
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'How long reconciliations took',
    type: 'histogram',
    labels: CONTROLLER,
    buckets: [
      0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25,
      1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
    ],
  },
  mostReconciles: {
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'Reconciliations that may run at the same time',
    type: 'gauge',
    labels: CONTROLLER,
  },
  runningReconciles: {
    name: 'controller_runtime_active_workers',
    help: 'Reconciliations that run now',
    type: 'gauge',
    labels: CONTROLLER,
  },
} as const satisfies MetricDeclarations;

const QUEUE_BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000] as const;

/** What each queue tells; names, labels and buckets are those of controller-runtime. */
export const queueMetrics = {
  queueDepth: {
    name: 'workqueue_depth',
    help: 'Keys that wait to be worked on',
    type: 'gauge',
    labels: QUEUE,
  },
  queueAdds: {
    name: 'workqueue_adds_total',
    help: 'Keys that were put into the queue',
    type: 'counter',
    labels: QUEUE,
  },
  queueRetries: {
    name: 'workqueue_retries_total',
    help: 'Keys that were put back to be tried again',
    type: 'counter',
    labels: QUEUE,
  },
  queueWaitSeconds: {
    name: 'workqueue_queue_duration_seconds',
    help: 'How long keys waited before they were worked on',
    type: 'histogram',
    labels: QUEUE,
    buckets: QUEUE_BUCKETS,
  },
  queueWorkSeconds: {
    name: 'workqueue_work_duration_seconds',
    help: 'How long keys were worked on',
    type: 'histogram',
    labels: QUEUE,
    buckets: QUEUE_BUCKETS,
  },
  queueLongestRunningSeconds: {
    name: 'workqueue_longest_running_processor_seconds',
    help: 'For how long the oldest work that still runs has been running',
    type: 'gauge',
    labels: QUEUE,
  },
  queueUnfinishedSeconds: {
    name: 'workqueue_unfinished_work_seconds',
    help: 'For how long all work that still runs has been running, added up',
    type: 'gauge',
    labels: QUEUE,
  },
} as const satisfies MetricDeclarations;

/** What a process that shares a lease tells; name and label are those of controller-runtime. */
export const leaderMetrics = {
  leads: {
    name: 'leader_election_master_status',
    help: '1 while this process leads, else 0',
    type: 'gauge',
    labels: { name: [] },
  },
} as const satisfies MetricDeclarations;

/** What every process tells about itself, beside what prom-client knows of the process and the event loop. */
export const processMetrics = {
  buildInfo: {
    name: 'mesh_gateway_build_info',
    help: 'Always 1; the label says what runs',
    type: 'gauge',
    labels: { version: [] },
  },
  gaugeErrors: {
    name: 'mesh_gateway_failed_readings_total',
    help: 'Gauges that could not be read when they were asked for',
    type: 'counter',
    labels: { metric: [] },
  },
} as const satisfies MetricDeclarations;

/** How long a call may take and still be told apart. */
const CALL_BUCKETS = [
  1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30,
] as const;

const CALL = { method: [], code: [] } as const;

/** What the extension server tells of the calls that it answers. */
export const grpcMetrics = {
  grpcRequests: {
    name: 'grpc_server_requests_total',
    help: 'Calls that have ended, by method and status code',
    type: 'counter',
    labels: CALL,
  },
  grpcSeconds: {
    name: 'grpc_server_request_duration_seconds',
    help: 'How long calls took that have ended',
    type: 'histogram',
    labels: CALL,
    buckets: CALL_BUCKETS,
  },
  grpcErrors: {
    name: 'grpc_server_errors_total',
    help: 'Calls that have ended with a status other than OK',
    type: 'counter',
    labels: CALL,
  },
} as const satisfies MetricDeclarations;

/** What the extension server tells of what it does for Envoy Gateway and Envoy. */
export const extensionMetrics = {
  hookFailures: {
    name: 'mesh_gateway_hook_failures_total',
    help: 'Calls of a hook that were answered with what was given, because changing it failed',
    type: 'counter',
    labels: { hook: ['route', 'cluster', 'endpoints', 'translation'] },
  },
  meshClusters: {
    name: 'mesh_gateway_mesh_clusters_total',
    help: 'Clusters with mesh endpoints that hooks have answered',
    type: 'counter',
    labels: { hook: ['route', 'cluster', 'endpoints', 'translation'] },
  },
  revisionWaits: {
    name: 'mesh_gateway_revision_waits_total',
    help: 'Translations that waited for a revision of a Gateway, by how that ended; with timeout they were answered as things were known',
    type: 'counter',
    labels: { end: ['reached', 'timeout'] },
  },
  edsStreams: {
    name: 'mesh_gateway_eds_streams',
    help: 'Streams over which Envoys follow endpoints',
    type: 'gauge',
    labels: {},
  },
  edsPushes: {
    name: 'mesh_gateway_eds_pushes_total',
    help: 'Assignments of endpoints that were sent to an Envoy',
    type: 'counter',
    labels: {},
  },
  edsAnswers: {
    name: 'mesh_gateway_eds_answers_total',
    help: 'What Envoys made of assignments that they were sent',
    type: 'counter',
    labels: { answer: ['ack', 'nack'] },
  },
  edsPushSeconds: {
    name: 'mesh_gateway_eds_push_lag_seconds',
    help: 'How long after a change its assignment was sent',
    type: 'histogram',
    labels: {},
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
  },
  unresolved: {
    name: 'mesh_gateway_unresolved_references',
    help: 'References and endpoints that get no traffic, by the reason',
    type: 'gauge',
    labels: { reason: [] },
  },
} as const satisfies MetricDeclarations;

/** What a client of an API server tells; the names are those of client-go. */
export const restClientMetrics = {
  restRequests: {
    name: 'rest_client_requests_total',
    help: 'Requests to the API server, by what was asked and the code of the answer, or <error> where there was none',
    type: 'counter',
    labels: { code: [], verb: ['get', 'list', 'watch', 'create', 'apply', 'patch', 'delete'] },
  },
  restSeconds: {
    name: 'rest_client_request_duration_seconds',
    help: 'How long requests to the API server took; of watches, until they began',
    type: 'histogram',
    labels: { verb: ['get', 'list', 'watch', 'create', 'apply', 'patch', 'delete'] },
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
  },
} as const satisfies MetricDeclarations;

/** What becomes of events that are told. */
export const eventMetrics = {
  events: {
    name: 'mesh_gateway_events_total',
    help: 'Events that were told, by what became of them: written, dropped because there were too many, or failed',
    type: 'counter',
    labels: { outcome: ['written', 'dropped', 'failed'] },
  },
} as const satisfies MetricDeclarations;

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
