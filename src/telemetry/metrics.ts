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
