import type { Key } from '../api/key.ts';
import type { ReadResources } from '../resources/resources.ts';
import type { Activities } from '../telemetry/activity.ts';
import type { Log } from '../telemetry/log.ts';
import type { controllerMetrics, queueMetrics } from '../telemetry/metrics.ts';
import type { Readiness } from '../telemetry/readiness.ts';
import type { GaugeReaders, Recorder } from '../telemetry/recorder.ts';
import type { QueueObserver, QueueState } from './queue/queue.ts';

type RuntimeMetrics = typeof controllerMetrics & typeof queueMetrics;

type RuntimeRecorder = Recorder<RuntimeMetrics>;

/** Where controllers tell what they do. */
export type Telemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<RuntimeMetrics> & { readonly record: RuntimeRecorder };
  readonly activities: Activities;
};

/** How a run ended, in the words of controller-runtime. */
export type Result = 'success' | 'requeue_after' | 'requeue' | 'error';

/** Hears what a controller does. */
export interface ControllerObserver extends QueueObserver {
  ran(result: Result, ms: number): void;
  failed(key: Key, error: unknown): void;
  ranLong(key: Key, ms: number): void;
  /** A run did not obey, and its place is given to others; that counts as its error, however it ends. */
  gaveUp(key: Key, ms: number): void;
  /** A trigger threw, so that what it would have led to is found by the resync only. */
  missed(key: Key, error: unknown): void;
}

/** What can be seen of a controller at any moment. */
export interface ControllerView {
  queue(): QueueState;
  runs(): readonly { readonly key: Key; readonly ms: number }[];
}

const RESULTS: readonly Result[] = ['success', 'requeue_after', 'requeue', 'error'];

/** A rise can only be seen of what was there before. */
function beginAtZero(controller: string, record: RuntimeRecorder): void {
  for (const result of RESULTS) record.reconciles({ controller, result }, 0);
  record.reconcileErrors({ controller }, 0);
  record.queueAdds({ name: controller }, 0);
  record.queueRetries({ name: controller }, 0);
}

/** Turns what a controller tells into metrics and lines of the log. */
export function observerOf(controller: string, { log, metrics }: Telemetry): ControllerObserver {
  const { record } = metrics;
  const labels = { controller };
  const queue = { name: controller };
  beginAtZero(controller, record);
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
    gaveUp: (key, ms) => {
      ran('error', ms);
      log.error('reconcile does not end', { controller, object: key, seconds: Math.round(ms / 1000) });
    },
    failed: (key, error) => log.error('reconcile failed', { controller, object: key, error }),
    ranLong: (key, ms) =>
      log.warn('reconcile takes long', { controller, object: key, seconds: Math.round(ms / 1000) }),
    missed: (key, error) => log.error('trigger failed', { controller, object: key, error }),
  };
}

/** Shows a controller in gauges and among the activities of the process; gives the function that ends it. */
export function show(
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
 * Makes a process unready until all that a source had at the start has been read, and shows among its activities how far
 * that is; gives the function that ends it.
 */
export function watchSource(
  name: string,
  resources: Pick<ReadResources, 'isSynced'>,
  { readiness, activities }: { readonly readiness: Readiness; readonly activities: Activities },
): () => void {
  const ends = [
    readiness.add(name, () => (resources.isSynced() ? undefined : 'not read yet')),
    activities.add(`source ${name}`, () => [
      resources.isSynced()
        ? { what: 'changes', state: 'followed' }
        : { what: 'first reading', state: 'under way' },
    ]),
  ];
  return () => ends.forEach(end => end());
}
