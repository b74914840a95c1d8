import type { Clock } from '../../api/clock.ts';
import { shareOfRuns } from '../../api/shares.ts';
import { TokenBucket } from '../../api/token-bucket.ts';
import { Priorities } from './priorities.ts';
import type { Priority } from './priorities.ts';

/** What a reconcile returns: when the key is reconciled next if no change enqueues it before. */
export type Outcome =
  | { readonly requeue: 'on-change' }
  | { readonly requeue: 'after'; readonly ms: number }
  /** As after an error; for a dependency that is missing and expected to appear. */
  | { readonly requeue: 'with-backoff' }
  /**
   * What the run needs is away, such as the API server. As with a backoff, of 30 s at most, and at once when a run of any such
   * key finds it again.
   */
  | { readonly requeue: 'once-available' };

/** Why a key is added. */
export type Cause =
  /** An object changed. */
  | 'change'
  /** It is part of the initial list, and runs after changes. */
  | 'first'
  /** The sync period is over; no change is known. */
  | 'resync';

/** Notified of what a queue does; called often, so it must be fast. */
export interface QueueObserver {
  /** A key was queued. */
  added(): void;
  /** A key left the queue to run, after this time in it. */
  waited(ms: number): void;
  /** A key will be retried after a backoff. */
  retried(): void;
}

export type QueueDeps<K extends string> = {
  readonly clock: Clock;
  /** Reconciles a key; a run that fails in any way counts as `with-backoff`. */
  readonly work: (key: K) => Promise<Outcome>;
  /** How many keys run at once, at most; released ones do not count. */
  readonly concurrency: number;
  readonly observer: QueueObserver;
  /** Keys of different namespaces take turns; those of cluster-scoped objects are in one of their own. */
  readonly namespaceOf: (key: K) => string;
};

/** How many keys are in each state. */
export type QueueState = {
  /** Queued because of a change. */
  readonly live: number;
  /** Queued by the initial list, or by a resync. */
  readonly background: number;
  /** Waiting for a requeue time or a backoff. */
  readonly delayed: number;
  readonly running: number;
};

/** The state of a key, which is deleted when the key is neither queued, delayed nor running. */
type Entry<K> = {
  readonly key: K;
  readonly namespace: string;
  /** A released run goes on without a slot. */
  state: Priority | 'running' | 'released' | 'later' | 'backoff' | 'away';
  /** The lane that it was in last, in which a retry is queued. */
  lane: Priority;
  /** The lane in which it is queued after its run, because it was added during the run. */
  next: Priority | undefined;
  /** Failed runs since the last success, by why they failed: the end of a long outage is no reason for a long backoff. */
  failures: { failed: number; away: number };
  queuedAt: number;
};

/**
 * Keys to be reconciled, never one of them twice at once. However often a key is added while it is queued, it runs once; if
 * it is added during its run, it runs once more afterwards. No run starts inside a call to the queue. A namespace with many
 * queued keys delays a key of another one by one run, and has at most half of all runs while others wait.
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
  readonly #lanes: Priorities<Entry<K>>;
  /** The timer of each key that waits for a time. */
  readonly #timers = new Map<Entry<K>, { readonly dueAt: number; readonly cancel: () => void }>();
  readonly #bucket = new TokenBucket(RETRIES);
  readonly #whenIdle: (() => void)[] = [];
  #phase: 'created' | 'started' | 'stopped' = 'created';
  #running = 0;
  #released = 0;
  /** The runs of each namespace that has any, without released ones. */
  readonly #runningOf = new Map<string, number>();
  #isScheduled = false;
  /** Whether a run has found away what it needs, and no such key's run has found it again since. */
  #isAway = false;

  constructor(deps: QueueDeps<K>) {
    this.#deps = deps;
    this.#lanes = new Priorities(({ namespace }) => namespace);
  }

  /** Starts to run keys; until then they are only queued. */
  start(): void {
    if (this.#phase === 'created') this.#phase = 'started';
    this.#schedule();
  }

  add(key: K, cause: Cause): void {
    if (this.#phase === 'stopped') return;
    const lane = cause === 'change' ? 'live' : 'background';
    const entry = this.#entries.get(key);
    if (entry) this.#addAgain(entry, cause, lane);
    else this.#push(this.#newEntry(key), lane);
  }

  /** Gives the slot of a run that does not end to another key; its own key does not run again until it ends. */
  release(key: K): void {
    const entry = this.#entries.get(key);
    if (entry?.state !== 'running') return;
    entry.state = 'released';
    this.#released++;
    this.#countRuns(entry, -1);
    this.#schedule();
  }

  /** Accepts no more keys and drops those that are not running; running ones go on. */
  stop(): void {
    this.#phase = 'stopped';
    this.#lanes.clear();
    for (const { cancel } of this.#timers.values()) cancel();
    this.#timers.clear();
    this.#entries.clear();
  }

  /** Resolves when no key is running. */
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
      namespace: this.#deps.namespaceOf(key),
      state: 'live',
      lane: 'live',
      next: undefined,
      failures: { failed: 0, away: 0 },
      queuedAt: 0,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #addAgain(entry: Entry<K>, cause: Cause, lane: Priority): void {
    switch (entry.state) {
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
      case 'away':
      case 'later':
        if (cause === 'resync' && entry.state !== 'later') return;
        this.#timers.get(entry)?.cancel();
        this.#timers.delete(entry);
        this.#push(entry, lane);
    }
  }

  #push(entry: Entry<K>, lane: Priority): void {
    entry.queuedAt = this.#deps.clock.now();
    this.#place(entry, lane);
    this.#deps.observer.added();
    this.#schedule();
  }

  #place(entry: Entry<K>, lane: Priority): void {
    entry.state = lane;
    entry.lane = lane;
    this.#lanes.push(entry, lane);
  }

  /** Runs start in a later turn of the event loop, so that no number of keys blocks input and output. */
  #schedule(): void {
    if (this.#isScheduled || !this.#canRun()) return;
    this.#isScheduled = true;
    this.#deps.clock.soon(() => this.#startRuns());
  }

  #canRun(): boolean {
    const hasRoom = this.#running - this.#released < this.#deps.concurrency;
    return (
      this.#phase === 'started' && hasRoom && this.#lanes.size('live') + this.#lanes.size('background') > 0
    );
  }

  #startRuns(): void {
    this.#isScheduled = false;
    const share = shareOfRuns(this.#deps.concurrency);
    while (this.#canRun()) {
      const entry = this.#lanes.shift(namespace => (this.#runningOf.get(namespace) ?? 0) >= share);
      if (entry) this.#run(entry);
    }
  }

  #run(entry: Entry<K>): void {
    entry.state = 'running';
    this.#running++;
    this.#countRuns(entry, 1);
    this.#deps.observer.waited(this.#deps.clock.now() - entry.queuedAt);
    const run = new Promise<Outcome>(resolve => resolve(this.#deps.work(entry.key)));
    run.then(
      outcome => this.#end(entry, outcome),
      () => this.#end(entry, { requeue: 'with-backoff' }),
    );
  }

  #countRuns({ namespace }: Entry<K>, change: 1 | -1): void {
    const runs = (this.#runningOf.get(namespace) ?? 0) + change;
    if (runs > 0) this.#runningOf.set(namespace, runs);
    else this.#runningOf.delete(namespace);
  }

  #end(entry: Entry<K>, outcome: Outcome): void {
    this.#running--;
    if (entry.state === 'released') this.#released--;
    else this.#countRuns(entry, -1);
    if (this.#phase !== 'stopped') {
      if (entry.failures.away > 0 && outcome.requeue !== 'once-available') this.#retryAway();
      this.#requeue(entry, outcome);
    }
    if (this.#running === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    this.#schedule();
  }

  #requeue(entry: Entry<K>, outcome: Outcome): void {
    const { next, failures } = entry;
    entry.next = undefined;
    if (outcome.requeue === 'with-backoff') entry.failures = { failed: failures.failed + 1, away: 0 };
    else if (outcome.requeue === 'once-available') entry.failures = { ...failures, away: failures.away + 1 };
    else entry.failures = { failed: 0, away: 0 };
    if (next) this.#push(entry, next);
    else if (outcome.requeue === 'on-change') this.#entries.delete(entry.key);
    else if (outcome.requeue === 'after') this.#delay(entry, 'later', outcome.ms);
    else this.#retry(entry, outcome.requeue === 'with-backoff' ? 'failed' : 'away');
  }

  #retry(entry: Entry<K>, why: 'failed' | 'away'): void {
    const tokenMs = this.#bucket.take(this.#deps.clock.now());
    const ms = Math.max(tokenMs, backoffMs(entry.failures[why], why));
    this.#delay(entry, why === 'failed' ? 'backoff' : 'away', ms);
    if (why === 'away') this.#isAway = true;
    this.#deps.observer.retried();
  }

  /** Retries what waits for something that is no longer away, evenly; tokens for the times at which it was due are not used. */
  #retryAway(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#bucket.fill();
    const now = this.#deps.clock.now();
    const away = [...this.#timers].filter(([{ state }]) => state === 'away');
    const intervalMs = returnIntervalMs(away.length);
    away.forEach(([entry, { dueAt, cancel }], index) => {
      cancel();
      this.#delay(entry, 'backoff', Math.min(dueAt - now, index * intervalMs));
    });
  }

  #delay(entry: Entry<K>, state: 'later' | 'backoff' | 'away', ms: number): void {
    entry.state = state;
    const { clock } = this.#deps;
    const cancel = clock.after(ms, () => {
      this.#timers.delete(entry);
      this.#push(entry, state === 'later' ? 'live' : entry.lane);
    });
    this.#timers.set(entry, { dueAt: clock.now() + ms, cancel });
  }
}

const FIRST_MS = 5;

/** The longest backoffs: after a failure, and while what a run needs is away, which has to be found again within a minute. */
const MAX_MS = { failed: 1_000_000, away: 30_000 };

/** The backoff after a number of failures in a row: 5 ms, and twice as long each time up to 1000 s, or 30 s. */
function backoffMs(failures: number, why: keyof typeof MAX_MS): number {
  return Math.min(FIRST_MS * 2 ** Math.max(0, failures - 1), MAX_MS[why]);
}

/** What waits for the same thing is retried within this time once that is back. */
const RETURN_MS = 20_000;

/** The time between two of these retries: as for all retries, and less where there are more than fit. */
function returnIntervalMs(retries: number): number {
  return Math.min(RETRIES.intervalMs, RETURN_MS / retries);
}

/** The rate limit of all keys' retries together; changes and requeues after a time are not limited. */
const RETRIES = { burst: 100, intervalMs: 100 };
