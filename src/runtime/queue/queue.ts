import type { Clock } from '../../api/clock.ts';
import { Lanes } from './lanes.ts';
import type { LaneName } from './lanes.ts';
import { backoffMs, TokenBucket } from './retry.ts';

/** What a run returns about the next run for the same key, if nothing changes before. */
export type Outcome =
  /** All is as it should be. */
  | { readonly look: 'on-change' }
  /** All is well until then. */
  | { readonly look: 'after'; readonly ms: number }
  /** Something is missing that will come by itself; as after an error, each wait is longer than the one before. */
  | { readonly look: 'with-backoff' };

/** Why a key is added. */
export type Cause =
  /** Something changed just now. */
  | 'change'
  /** It was part of the initial list, and can wait behind what changes now. */
  | 'first'
  /** It has not been reconciled for a while; nothing is known to have changed. */
  | 'resync';

/** Notified of what a queue does, often: it must be quick. */
export interface QueueObserver {
  /** A key began to wait for its turn. */
  added(): void;
  /** A key had its turn, after a wait. */
  waited(ms: number): void;
  /** A key will be retried because its run did not succeed. */
  retried(): void;
}

export type QueueDeps<K extends string> = {
  readonly clock: Clock;
  /** Reconciles a key; a run that fails in any way counts as `with-backoff`. */
  readonly work: (key: K) => Promise<Outcome>;
  /** How many keys run at once, at most; those that are released do not count. */
  readonly concurrency: number;
  readonly observer: QueueObserver;
};

/** How many keys are where. */
export type QueueState = {
  /** Waiting for their turn because of a change. */
  readonly live: number;
  /** Waiting for their turn since the initial list, or for the resync. */
  readonly background: number;
  /** Waiting for a time. */
  readonly delayed: number;
  readonly running: number;
};

/** What a queue knows of a key. The key is in one place, and forgotten when it has none. */
type Entry<K> = {
  readonly key: K;
  /** A released run goes on without a place of its own. */
  at: LaneName | 'running' | 'released' | 'later' | 'backoff';
  /** The lane that it was in last, to which a retry returns. */
  lane: LaneName;
  /** Where it goes after its run, because something changed meanwhile. */
  next: LaneName | undefined;
  /** Runs without success in a row. */
  failures: number;
  /** Since when it waits for its turn. */
  waitsSince: number;
};

/** Retries of all keys together; changes and planned runs are not limited. */
const RETRIES = { burst: 100, intervalMs: 100 };

/**
 * Keys to be reconciled, each at its time and never twice at once. However often a key is added before its turn, it runs
 * once; if it is added during its run, once more afterwards. No work begins inside of a call to the queue.
 *
 *     added for | unknown key | background | running         | later      | backoff
 *     ----------+-------------+------------+-----------------+------------+-----------
 *     change    | live        | live       | then live       | live       | live
 *     first     | background  | stays      | then background | background | background
 *     resync    | background  | stays      | stays           | background | stays
 */
export class Queue<K extends string> {
  readonly #deps: QueueDeps<K>;
  readonly #entries = new Map<K, Entry<K>>();
  readonly #lanes = new Lanes<Entry<K>>();
  /** How to cancel the timer of each key that waits for a time. */
  readonly #timers = new Map<Entry<K>, () => void>();
  readonly #bucket = new TokenBucket(RETRIES);
  readonly #whenIdle: (() => void)[] = [];
  #phase: 'gathering' | 'working' | 'stopped' = 'gathering';
  #running = 0;
  #released = 0;
  #isWoken = false;

  constructor(deps: QueueDeps<K>) {
    this.#deps = deps;
  }

  /** Begins to work; until then keys gather. */
  start(): void {
    if (this.#phase === 'gathering') this.#phase = 'working';
    this.#wake();
  }

  add(key: K, cause: Cause): void {
    if (this.#phase === 'stopped') return;
    const lane = cause === 'change' ? 'live' : 'background';
    const entry = this.#entries.get(key);
    if (entry) this.#addAgain(entry, cause, lane);
    else this.#push(this.#newEntry(key), lane);
  }

  /** Lets another key run beside one whose run nobody waits for any more; until that ends, its own key does not run. */
  release(key: K): void {
    const entry = this.#entries.get(key);
    if (entry?.at !== 'running') return;
    entry.at = 'released';
    this.#released++;
    this.#wake();
  }

  /** Takes no more keys and forgets those that wait; running ones go on. */
  stop(): void {
    this.#phase = 'stopped';
    this.#lanes.clear();
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    this.#entries.clear();
  }

  /** Resolves when nothing runs. */
  whenIdle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise(resolve => this.#whenIdle.push(resolve));
  }

  state(): QueueState {
    const [live, background] = [this.#lanes.size('live'), this.#lanes.size('background')];
    return { live, background, delayed: this.#timers.size, running: this.#running };
  }

  #newEntry(key: K): Entry<K> {
    const entry: Entry<K> = {
      key,
      at: 'live',
      lane: 'live',
      next: undefined,
      failures: 0,
      waitsSince: 0,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #addAgain(entry: Entry<K>, cause: Cause, lane: LaneName): void {
    switch (entry.at) {
      case 'live':
        return;
      case 'background':
        if (lane === 'background') return;
        this.#lanes.remove(entry, 'background');
        this.#place(entry, 'live');
        return;
      case 'running':
      case 'released':
        if (cause !== 'resync' && entry.next !== 'live') entry.next = lane;
        return;
      case 'backoff':
      case 'later':
        if (cause === 'resync' && entry.at === 'backoff') return;
        this.#timers.get(entry)?.();
        this.#timers.delete(entry);
        this.#push(entry, lane);
    }
  }

  #push(entry: Entry<K>, lane: LaneName): void {
    entry.waitsSince = this.#deps.clock.now();
    this.#place(entry, lane);
    this.#deps.observer.added();
    this.#wake();
  }

  #place(entry: Entry<K>, lane: LaneName): void {
    entry.at = lane;
    entry.lane = lane;
    this.#lanes.push(entry, lane);
  }

  /** Node's event loop turns between two rounds, so that no number of keys keeps it from its input and output. */
  #wake(): void {
    if (this.#isWoken || !this.#canBegin()) return;
    this.#isWoken = true;
    this.#deps.clock.soon(() => this.#beginRuns());
  }

  #canBegin(): boolean {
    const hasRoom = this.#running - this.#released < this.#deps.concurrency;
    return (
      this.#phase === 'working' && hasRoom && this.#lanes.size('live') + this.#lanes.size('background') > 0
    );
  }

  #beginRuns(): void {
    this.#isWoken = false;
    while (this.#canBegin()) {
      const entry = this.#lanes.shift();
      if (entry) this.#begin(entry);
    }
  }

  #begin(entry: Entry<K>): void {
    entry.at = 'running';
    this.#running++;
    this.#deps.observer.waited(this.#deps.clock.now() - entry.waitsSince);
    const run = new Promise<Outcome>(resolve => resolve(this.#deps.work(entry.key)));
    run.then(
      outcome => this.#end(entry, outcome),
      () => this.#end(entry, { look: 'with-backoff' }),
    );
  }

  #end(entry: Entry<K>, outcome: Outcome): void {
    this.#running--;
    if (entry.at === 'released') this.#released--;
    entry.failures = outcome.look === 'with-backoff' ? entry.failures + 1 : 0;
    if (this.#phase !== 'stopped') this.#requeue(entry, outcome);
    if (this.#running === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    this.#wake();
  }

  #requeue(entry: Entry<K>, outcome: Outcome): void {
    const { next } = entry;
    entry.next = undefined;
    if (next) this.#push(entry, next);
    else if (outcome.look === 'on-change') this.#entries.delete(entry.key);
    else if (outcome.look === 'after') this.#delay(entry, 'later', outcome.ms);
    else this.#retry(entry);
  }

  #retry(entry: Entry<K>): void {
    const tokenMs = this.#bucket.take(this.#deps.clock.now());
    this.#delay(entry, 'backoff', Math.max(tokenMs, backoffMs(entry.failures)));
    this.#deps.observer.retried();
  }

  #delay(entry: Entry<K>, at: 'later' | 'backoff', ms: number): void {
    entry.at = at;
    const cancel = this.#deps.clock.after(ms, () => {
      this.#timers.delete(entry);
      this.#push(entry, at === 'backoff' ? entry.lane : 'live');
    });
    this.#timers.set(entry, cancel);
  }
}
