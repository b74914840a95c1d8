import { keyOf } from '../api/key.ts';
import type { Clock } from '../api/clock.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import type { Dependent } from '../store/dependencies.ts';
import type { ReadSet, TrackedRead, Tracking } from '../store/tracking.ts';
import type { Cause } from './queue/queue.ts';

type WantedKeysOptions = {
  readonly tracking: Tracking;
  readonly clock: Pick<Clock, 'soon'>;
  readonly enqueue: (key: Key, cause: Cause) => void;
};

/** The objects that a controller reconciles although they may not exist; one that is new or no longer wanted is enqueued. */
export class WantedKeys<K extends ResourceKind> implements Dependent {
  readonly #list: (read: TrackedRead) => readonly Ref<K>[];
  readonly #options: WantedKeysOptions;
  readonly #reads: ReadSet;
  #keys: ReadonlySet<Key> = new Set();
  #state: 'created' | 'listed' | 'to be listed' | 'stopped' = 'created';

  constructor(list: (read: TrackedRead) => readonly Ref<K>[], options: WantedKeysOptions) {
    this.#list = list;
    this.#options = options;
    this.#reads = options.tracking.readsOf(this);
  }

  has(key: Key): boolean {
    return this.#keys.has(key);
  }

  start(): void {
    if (this.#state === 'created') this.#update('first');
  }

  /** The list is made in a later turn of the event loop, once for many changes. */
  affected(): void {
    if (this.#state !== 'listed') return;
    this.#state = 'to be listed';
    this.#options.clock.soon(() => {
      if (this.#state === 'to be listed') this.#update('change');
    });
  }

  stop(): void {
    this.#state = 'stopped';
    this.#reads.clear();
  }

  #update(cause: Cause): void {
    const before = this.#keys;
    const run = this.#reads.open();
    this.#keys = new Set(this.#list(run).map(keyOf));
    this.#reads.close(run, true);
    this.#state = 'listed';
    for (const key of this.#keys) if (!before.has(key)) this.#options.enqueue(key, cause);
    for (const key of before) if (!this.#keys.has(key)) this.#options.enqueue(key, cause);
  }
}
