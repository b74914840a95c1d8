/**
 * The values that a label has: a closed list, each of which is there at zero from the start, or an empty list where
 * only whoever makes the registry knows them.
 */
type LabelValues = readonly string[];

type Labels = Readonly<Record<string, LabelValues>>;

/** A metric as data: what is measured, under which name, and by what it is told apart. */
export type MetricDeclaration = {
  readonly name: string;
  readonly help: string;
  readonly labels: Labels;
} & (
  | { readonly type: 'counter' }
  | { readonly type: 'gauge' }
  | { readonly type: 'histogram'; readonly buckets: readonly number[] }
);

/** Metrics by the names under which code records them. */
export type MetricDeclarations = Readonly<Record<string, MetricDeclaration>>;

function counter<const L extends Labels>(name: string, help: string, labels: L) {
  return { name, help, type: 'counter', labels } as const;
}

function gauge<const L extends Labels>(name: string, help: string, labels: L) {
  return { name, help, type: 'gauge', labels } as const;
}

function histogram<const L extends Labels>(
  name: string,
  help: string,
  labels: L,
  buckets: readonly number[],
) {
  return { name, help, type: 'histogram', labels, buckets } as const;
}

const CONTROLLER = { controller: [] } as const;
const QUEUE = { name: [] } as const;

/** What the loop of each controller tells; names, labels and buckets are those of controller-runtime. */
export const controllerMetrics = {
  reconciles: counter(
    'controller_runtime_reconcile_total',
    'Reconciliations per controller, by how they ended',
    { ...CONTROLLER, result: ['success', 'error', 'requeue', 'requeue_after'] },
  ),
  reconcileErrors: counter(
    'controller_runtime_reconcile_errors_total',
    'Reconciliations per controller that ended with an error',
    CONTROLLER,
  ),
  reconcileSeconds: histogram(
    'controller_runtime_reconcile_time_seconds',
    'How long reconciliations took',
    CONTROLLER,
    [
      0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25,
      1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
    ],
  ),
  mostReconciles: gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Reconciliations that may run at the same time',
    CONTROLLER,
  ),
  runningReconciles: gauge('controller_runtime_active_workers', 'Reconciliations that run now', CONTROLLER),
} as const satisfies MetricDeclarations;

const QUEUE_BUCKETS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1000] as const;

/** What each queue tells; names, labels and buckets are those of controller-runtime. */
export const queueMetrics = {
  queueDepth: gauge('workqueue_depth', 'Keys that wait to be worked on', QUEUE),
  queueAdds: counter('workqueue_adds_total', 'Keys that were put into the queue', QUEUE),
  queueRetries: counter('workqueue_retries_total', 'Keys that were put back to be tried again', QUEUE),
  queueWaitSeconds: histogram(
    'workqueue_queue_duration_seconds',
    'How long keys waited before they were worked on',
    QUEUE,
    QUEUE_BUCKETS,
  ),
  queueWorkSeconds: histogram(
    'workqueue_work_duration_seconds',
    'How long keys were worked on',
    QUEUE,
    QUEUE_BUCKETS,
  ),
  queueLongestRunningSeconds: gauge(
    'workqueue_longest_running_processor_seconds',
    'For how long the oldest work that still runs has been running',
    QUEUE,
  ),
  queueUnfinishedSeconds: gauge(
    'workqueue_unfinished_work_seconds',
    'For how long all work that still runs has been running, added up',
    QUEUE,
  ),
} as const satisfies MetricDeclarations;

/** What a process that shares a lease tells; name and label are those of controller-runtime. */
export const leaderMetrics = {
  leads: gauge('leader_election_master_status', '1 while this process leads, else 0', { name: [] }),
} as const satisfies MetricDeclarations;

/** What every process tells about itself, beside what prom-client knows of the process and the event loop. */
export const processMetrics = {
  buildInfo: gauge('mesh_gateway_build_info', 'Always 1; the label says what runs', { version: [] }),
  gaugeErrors: counter(
    'mesh_gateway_failed_readings_total',
    'Gauges that could not be read when they were asked for',
    { metric: [] },
  ),
} as const satisfies MetricDeclarations;

/** How long a call may take and still be told apart. */
const CALL_BUCKETS = [
  1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30,
] as const;

const CALL = { method: [], code: [] } as const;

/** What the extension server tells of the calls that it answers. */
export const grpcMetrics = {
  grpcRequests: counter(
    'grpc_server_requests_total',
    'Calls that have ended, by method and status code',
    CALL,
  ),
  grpcSeconds: histogram(
    'grpc_server_request_duration_seconds',
    'How long calls took that have ended',
    CALL,
    CALL_BUCKETS,
  ),
  grpcErrors: counter('grpc_server_errors_total', 'Calls that have ended with a status other than OK', CALL),
} as const satisfies MetricDeclarations;

/** What the extension server tells of what it does for Envoy Gateway and Envoy. */
export const extensionMetrics = {
  hookFailures: counter(
    'mesh_gateway_hook_failures_total',
    'Calls of a hook that were answered with what was given, because changing it failed',
    { hook: ['translation'] },
  ),
  meshClusters: counter(
    'mesh_gateway_mesh_clusters_total',
    'Clusters with mesh endpoints that hooks have answered',
    { hook: ['translation'] },
  ),
  revisionWaits: counter(
    'mesh_gateway_revision_waits_total',
    'Translations that waited for a revision of a Gateway, by how that ended; with timeout they were answered as things were known',
    { end: ['reached', 'timeout'] },
  ),
  edsStreams: gauge('mesh_gateway_eds_streams', 'Streams over which Envoys follow endpoints', {}),
  edsPushes: counter(
    'mesh_gateway_eds_pushes_total',
    'Assignments of endpoints that were sent to an Envoy',
    {},
  ),
  edsAnswers: counter(
    'mesh_gateway_eds_answers_total',
    'What Envoys made of assignments that they were sent',
    { answer: ['ack', 'nack'] },
  ),
  edsPushSeconds: histogram(
    'mesh_gateway_eds_push_lag_seconds',
    'How long after a change its assignment was sent',
    {},
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 30],
  ),
  unresolved: gauge(
    'mesh_gateway_unresolved_references',
    'References and endpoints that get no traffic, by the reason',
    { reason: [] },
  ),
} as const satisfies MetricDeclarations;

/** What a client of an API server tells; the names are those of client-go. */
export const restClientMetrics = {
  restRequests: counter(
    'rest_client_requests_total',
    'Requests to the API server, by what was asked and the code of the answer, or <error> where there was none',
    { code: [], verb: ['get', 'list', 'watch', 'create', 'apply', 'patch', 'delete'] },
  ),
  restSeconds: histogram(
    'rest_client_request_duration_seconds',
    'How long requests to the API server took; of watches, until they began',
    { verb: ['get', 'list', 'watch', 'create', 'apply', 'patch', 'delete'] },
    [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
  ),
} as const satisfies MetricDeclarations;

/** What becomes of events that are told. */
export const eventMetrics = {
  events: counter(
    'mesh_gateway_events_total',
    'Events that were told, by what became of them: written, dropped because there were too many, or failed',
    { outcome: ['written', 'dropped', 'failed'] },
  ),
} as const satisfies MetricDeclarations;

const KIND = { kind: [] } as const;

/** Metrics of a process that reads from an API server. */
export const sourceMetrics = {
  sourceLists: counter('mesh_gateway_source_lists_total', 'Lists that were read to their end, by kind', KIND),
  sourceWatches: counter('mesh_gateway_source_watches_total', 'Watches that were begun, by kind', KIND),
  sourceEvents: counter('mesh_gateway_source_events_total', 'Changes that watches told, by kind', KIND),
  sourceFailures: counter(
    'mesh_gateway_source_failures_total',
    'Lists and watches that did not end well, by kind and reason',
    {
      ...KIND,
      reason: [
        'Unauthorized',
        'Forbidden',
        'NotFound',
        'Conflict',
        'Expired',
        'Invalid',
        'Busy',
        'Failed',
        'Unreachable',
        'Garbled',
        'Aborted',
        'Silent',
      ],
    },
  ),
  sourceObjects: gauge('mesh_gateway_source_objects', 'Objects that are known, by kind', KIND),
  sourceUndecodable: gauge(
    'mesh_gateway_source_undecodable_objects',
    'Objects that are there and cannot be read, by kind',
    KIND,
  ),
} as const satisfies MetricDeclarations;

/** A metric that is not ours but that our alerts and dashboards rest on, and where it comes from. */
export type ForeignMetric = {
  readonly name: string;
  readonly from: 'Prometheus' | 'cAdvisor' | 'kube-state-metrics' | 'prom-client';
  readonly labels: Readonly<Record<string, readonly string[]>>;
};

const CONTAINER = { namespace: [], pod: [], container: [] } as const;

/** All of them: an expression that needs another has to be listed here first. */
export const foreignMetrics = {
  up: { name: 'up', from: 'Prometheus', labels: {} },
  memoryInUse: { name: 'container_memory_working_set_bytes', from: 'cAdvisor', labels: CONTAINER },
  memoryLimit: { name: 'container_spec_memory_limit_bytes', from: 'cAdvisor', labels: CONTAINER },
  declaredLimit: {
    name: 'kube_pod_container_resource_limits',
    from: 'kube-state-metrics',
    labels: { ...CONTAINER, resource: ['memory'] },
  },
  processMemory: { name: 'process_resident_memory_bytes', from: 'prom-client', labels: {} },
  processSeconds: { name: 'process_cpu_seconds_total', from: 'prom-client', labels: {} },
  eventLoopLag: { name: 'nodejs_eventloop_lag_p99_seconds', from: 'prom-client', labels: {} },
} as const satisfies Readonly<Record<string, ForeignMetric>>;
