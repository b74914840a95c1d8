import type { Clock } from '../../api/clock.ts';
import type { WatchedCluster } from './watched-cluster.ts';

/** Changes within this time are pushed together. */
const DEBOUNCE_MS = 5;

/** The event loop is yielded after this time. */
const MAX_TURN_MS = 10;

/** Changed clusters, debounced and then flushed to the streams that subscribe to them, yielding to the event loop. */
export class PushQueue {
  readonly #clock: Clock;
  readonly #changed = new Set<WatchedCluster>();
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  enqueue(cluster: WatchedCluster): void {
    this.#changed.add(cluster);
    this.#cancel ??= this.#clock.after(DEBOUNCE_MS, () => this.#flush());
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#changed.clear();
  }

  #flush(): void {
    if (this.#isClosed) return;
    const end = this.#clock.now() + MAX_TURN_MS;
    for (const cluster of this.#changed) {
      this.#changed.delete(cluster);
      for (const subscription of cluster.subscriptions) {
        if (cluster.isOutdated(subscription)) subscription.stream.enqueue(subscription);
      }
      if (this.#clock.now() > end) {
        this.#clock.soon(() => this.#flush());
        return;
      }
    }
    this.#cancel = undefined;
  }
}
