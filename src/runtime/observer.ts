import type { Key } from '../api/key.ts';
import type { ReadResources } from '../store/resources.ts';
import type { Activities } from '../telemetry/activity.ts';
import type { Log } from '../telemetry/log.ts';
import type { controllerMetrics, queueMetrics } from '../telemetry/metrics.ts';
import type { Readiness } from '../telemetry/readiness.ts';
import type { GaugeReaders, Recorder } from '../telemetry/metric-recorder.ts';
import type { QueueObserver, QueueState } from './queue/queue.ts';

type RuntimeMetrics = typeof controllerMetrics & typeof queueMetrics;

type RuntimeRecorder = Recorder<RuntimeMetrics>;

/** Where controllers are logged and measured. */
export type Telemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<RuntimeMetrics> & { readonly record: RuntimeRecorder };
  readonly activities: Activities;
};

/** How a run ended, as controller-runtime's label `result` has it. */
export type Result = 'success' | 'requeue_after' | 'requeue' | 'error';

/** Notified of what a controller does. */
export interface ControllerObserver extends QueueObserver {
  ran(result: Result, ms: number): void;
  failed(key: Key, error: unknown): void;
  longRunning(key: Key, ms: number): void;
  /** A run went on after it was aborted, and its slot was released; it counts as an error, however it ends. */
  abandoned(key: Key, ms: number): void;
}

/** The state of a controller, for gauges and activities. */
export interface ControllerView {
  queue(): QueueState;
  runs(): readonly { readonly key: Key; readonly ms: number }[];
}

const RESULTS: readonly Result[] = ['success', 'requeue_after', 'requeue', 'error'];

/** rate() sees the first increase of a counter only if it existed before. */
function initializeAtZero(controller: string, record: RuntimeRecorder): void {
  for (const result of RESULTS) record.reconciles({ controller, result }, 0);
  record.reconcileErrors({ controller }, 0);
  record.queueAdds({ name: controller }, 0);
  record.queueRetries({ name: controller }, 0);
}

/** Turns what a controller does into metrics and log lines. */
export function observerOf(controller: string, { log, metrics }: Telemetry): ControllerObserver {
  const { record } = metrics;
  const labels = { controller };
  const queue = { name: controller };
  initializeAtZero(controller, record);
  const ran = (result: Result, ms: number) => {
    record.reconciles({ controller, result });
    if (result === 'error') record.reconcileErrors(labels);
    record.reconcileSeconds(labels, ms / 1000);
    record.queueWorkSeconds(queue, ms / 1000);
  };
  return {
    added: () => record.queueAdds(queue),
    waited: ms => record.queueWaitSeconds(queue, ms / 1000),
    retried: () => record.queueRetries(queue),
    ran,
    abandoned: (key, ms) => {
      ran('error', ms);
      log.error('reconcile did not stop after it was aborted', {
        controller,
        object: key,
        seconds: Math.round(ms / 1000),
      });
    },
    failed: (key, error) => log.error('reconcile failed', { controller, object: key, error }),
    longRunning: (key, ms) =>
      log.warn('reconcile takes too long', { controller, object: key, seconds: Math.round(ms / 1000) }),
  };
}

/** Registers the gauges and activities of a controller; returns the function that removes them. */
export function registerGauges(
  controller: string,
  concurrency: number,
  view: ControllerView,
  { metrics, activities }: Telemetry,
): () => void {
  const name = { name: controller };
  const seconds = () => view.runs().map(({ ms }) => ms / 1000);
  const ends = [
    metrics.readGauge('mostReconciles', () => [{ labels: { controller }, value: concurrency }]),
    metrics.readGauge('runningReconciles', () => [{ labels: { controller }, value: view.queue().running }]),
    metrics.readGauge('queueDepth', () => [
      { labels: name, value: view.queue().live + view.queue().background },
    ]),
    metrics.readGauge('queueLongestRunningSeconds', () => [
      { labels: name, value: Math.max(0, ...seconds()) },
    ]),
    metrics.readGauge('queueUnfinishedSeconds', () => [
      { labels: name, value: seconds().reduce((sum, one) => sum + one, 0) },
    ]),
    activities.add(`controller ${controller}`, () => activitiesOf(view)),
  ];
  return () => ends.forEach(end => end());
}

function activitiesOf(view: ControllerView): ReturnType<Parameters<Activities['add']>[1]> {
  const { live, background, delayed } = view.queue();
  const counts = { live, background, delayed };
  return [
    ...view.runs().map(({ key, ms }) => ({ what: key, state: 'running', forMs: ms })),
    ...Object.entries(counts).flatMap(([state, count]) =>
      count > 0 ? [{ what: `${count} keys`, state }] : [],
    ),
  ];
}

/**
 * Makes a process unready until a source is synced, and lists among its activities whether it is; returns the function
 * that ends it.
 */
export function registerSource(
  name: string,
  resources: Pick<ReadResources, 'isSynced'>,
  { readiness, activities }: { readonly readiness: Readiness; readonly activities: Activities },
): () => void {
  const ends = [
    readiness.add(name, () => (resources.isSynced() ? undefined : 'not synced yet')),
    activities.add(`source ${name}`, () => [
      { what: 'objects', state: resources.isSynced() ? 'synced' : 'syncing' },
    ]),
  ];
  return () => ends.forEach(end => end());
}
