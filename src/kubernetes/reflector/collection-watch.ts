import type { Clock } from '../../api/clock.ts';
import type { Log } from '../../telemetry/log.ts';
import type { sourceMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import type { Collection } from '../served-kinds.ts';
import type { KubeTransport } from '../transport/transport.ts';
import { KindObserver } from './observer.ts';
import { Reflector } from './reflector.ts';
import type { Updates } from './reflector.ts';
import { DEFAULT_TIMING } from './state.ts';
import type { ReflectorState, Timing } from './state.ts';

/** What a watch of a few objects, which are not stored, depends on. */
export type WatchDeps = {
  readonly clock: Clock;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly telemetry: {
    readonly log: Log;
    readonly metrics: { readonly record: Recorder<typeof sourceMetrics> };
  };
  readonly timing?: Partial<Timing>;
};

/** A collection and what is done with its objects. */
type CollectionWatchOptions = WatchDeps & {
  readonly collection: Collection;
  readonly transport: KubeTransport;
  readonly updates: Updates;
  /** Called with each state that follows an event, before its updates. */
  readonly onState?: (state: ReflectorState) => void;
};

/** Watches a collection once it is started, and logs and counts as the sources of a store do. */
export function createCollectionWatch(options: CollectionWatchOptions): Reflector {
  const { collection, telemetry, clock, onState } = options;
  const { kind, namespace } = collection;
  const observer = new KindObserver(kind, telemetry, clock);
  return new Reflector({
    ...options,
    timing: { ...DEFAULT_TIMING, ...options.timing },
    observer: {
      moved: (before, event, after) => {
        observer.moved(before, event, after);
        onState?.(after);
      },
      failed: error => telemetry.log.error('unexpected error in a watch', { kind, namespace, error }),
    },
    onSynced: () => undefined,
  });
}
