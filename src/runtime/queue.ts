import { backoffMs } from './backoff.ts';
import type { Clock } from '../api/clock.ts';
import { Delays } from './delays.ts';
import { newEntry } from './entry.ts';
import type { Entry, LaneName } from './entry.ts';
import type { Cause, Outcome } from './outcome.ts';
import { TokenBucket } from './token-bucket.ts';
import { Turns } from './turns.ts';

/** Hears what a queue does, often: it must be quick. */
export interface QueueObserver {
  /** A key began to wait for its turn. */
  added(): void;
  /** A key had its turn, after so long. */
  waited(ms: number): void;
  /** A key will be looked at again because its run did not succeed. */
  retried(): void;
}

/** What a queue works with. */
export type QueueParts<K extends string> = {
  readonly clock: Clock;
  /** Looks at a key; a run that fails in any way counts as `with-backoff`. */
  readonly work: (key: K) => Promise<Outcome>;
  /** How many keys are looked at at once, at most; those that are released do not count. */
  readonly concurrency: number;
  readonly observer: QueueObserver;
};

/** How many keys are where. */
export type QueueState = {
  /** Waiting for their turn because of a change. */
  readonly live: number;
  /** Waiting for their turn since the first reading, or for the resync. */
  readonly background: number;
  /** Waiting for a time. */
  readonly delayed: number;
  readonly running: number;
};

/** Retries of all keys together; changes and looks that were planned pay nothing. */
const RETRIES = { burst: 100, intervalMs: 100 };

/**
 * Keys to be looked at, each at its time and never twice at once. However often a key is added before its turn, it is
 * looked at once; if it is added during its run, once more afterwards. No work begins inside of a call to the queue.
 *
 *     added for | unknown key | background | running         | later      | backoff
 *     ----------+-------------+------------+-----------------+------------+-----------
 *     change    | live        | live       | then live       | live       | live
 *     first     | background  | stays      | then background | background | background
 *     resync    | background  | stays      | stays           | background | stays
 */
export class Queue<K extends string> {
  readonly #parts: QueueParts<K>;
  readonly #entries = new Map<K, Entry<K>>();
  readonly #turns = new Turns<K>();
  readonly #delays: Delays<Entry<K>>;
  readonly #bucket = new TokenBucket(RETRIES);
  readonly #whenIdle: (() => void)[] = [];
  #phase: 'gathering' | 'working' | 'stopped' = 'gathering';
  #running = 0;
  #released = 0;
  #isWoken = false;

  constructor(parts: QueueParts<K>) {
    this.#parts = parts;
    this.#delays = new Delays(parts.clock, entry =>
      this.#line(entry, entry.at === 'backoff' ? entry.lane : 'live'),
    );
  }

  /** Begins to work; until then keys gather. */
  start(): void {
    if (this.#phase === 'gathering') this.#phase = 'working';
    this.#wake();
  }

  /** Says that a key is to be looked at. */
  add(key: K, cause: Cause): void {
    if (this.#phase === 'stopped') return;
    const lane = cause === 'change' ? 'live' : 'background';
    const entry = this.#entries.get(key);
    if (entry) this.#addAgain(entry, cause, lane);
    else this.#line(this.#remember(key), lane);
  }

  /** Lets another key run beside one whose run nobody waits for any more; until that ends, its own key does not run. */
  release(key: K): void {
    const entry = this.#entries.get(key);
    if (entry?.at !== 'running') return;
    entry.at = 'released';
    this.#released++;
    this.#wake();
  }

  /** Takes no more keys and forgets those that wait; what runs goes on. */
  stop(): void {
    this.#phase = 'stopped';
    this.#turns.clear();
    this.#delays.clear();
    this.#entries.clear();
  }

  /** Resolves when nothing runs. */
  whenIdle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise(resolve => this.#whenIdle.push(resolve));
  }

  state(): QueueState {
    const { live, background } = this.#turns;
    return { live, background, delayed: this.#delays.size, running: this.#running };
  }

  #remember(key: K): Entry<K> {
    const entry = newEntry(key);
    this.#entries.set(key, entry);
    return entry;
  }

  #addAgain(entry: Entry<K>, cause: Cause, lane: LaneName): void {
    switch (entry.at) {
      case 'live':
        return;
      case 'background':
        if (lane === 'live') this.#turns.lift(entry);
        return;
      case 'running':
      case 'released':
        if (cause !== 'resync' && entry.next !== 'live') entry.next = lane;
        return;
      case 'backoff':
      case 'later':
        if (cause === 'resync' && entry.at === 'backoff') return;
        this.#delays.remove(entry);
        this.#line(entry, lane);
    }
  }

  #line(entry: Entry<K>, lane: LaneName): void {
    entry.waitsSince = this.#parts.clock.now();
    this.#turns.push(entry, lane);
    this.#parts.observer.added();
    this.#wake();
  }

  #canBegin(): boolean {
    const hasPlace = this.#running - this.#released < this.#parts.concurrency;
    return this.#phase === 'working' && hasPlace && this.#turns.length > 0;
  }

  /** Node's loop turns between two rounds, so that no number of keys keeps it from its input and output. */
  #wake(): void {
    if (this.#isWoken || !this.#canBegin()) return;
    this.#isWoken = true;
    this.#parts.clock.soon(() => this.#beginRuns());
  }

  #beginRuns(): void {
    this.#isWoken = false;
    while (this.#canBegin()) {
      const entry = this.#turns.next();
      if (entry) this.#begin(entry);
    }
  }

  #begin(entry: Entry<K>): void {
    entry.at = 'running';
    this.#running++;
    this.#parts.observer.waited(this.#parts.clock.now() - entry.waitsSince);
    const run = new Promise<Outcome>(resolve => resolve(this.#parts.work(entry.key)));
    run.then(
      outcome => this.#end(entry, outcome),
      () => this.#end(entry, { look: 'with-backoff' }),
    );
  }

  #end(entry: Entry<K>, outcome: Outcome): void {
    this.#running--;
    if (entry.at === 'released') this.#released--;
    entry.failures = outcome.look === 'with-backoff' ? entry.failures + 1 : 0;
    if (this.#phase !== 'stopped') this.#goOn(entry, outcome);
    if (this.#running === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    this.#wake();
  }

  #goOn(entry: Entry<K>, outcome: Outcome): void {
    const { next } = entry;
    entry.next = undefined;
    if (next) this.#line(entry, next);
    else if (outcome.look === 'on-change') this.#entries.delete(entry.key);
    else if (outcome.look === 'after') this.#delay(entry, 'later', outcome.ms);
    else this.#retry(entry);
  }

  #retry(entry: Entry<K>): void {
    const turn = this.#bucket.take(this.#parts.clock.now());
    this.#delay(entry, 'backoff', Math.max(turn, backoffMs(entry.failures)));
    this.#parts.observer.retried();
  }

  #delay(entry: Entry<K>, at: 'later' | 'backoff', ms: number): void {
    entry.at = at;
    this.#delays.add(entry, ms);
  }
}
