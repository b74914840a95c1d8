import type { Clock } from '../../api/clock.ts';
import { FairLimit } from '../../api/fair-limit.ts';
import { MAX_EVENT_SERIES, MAX_EVENT_WRITES } from '../../api/shares.ts';
import type { eventMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/metric-recorder.ts';
import type { ObjectEvent, RecordEvents } from '../../store/resources.ts';
import type { KubeTransport } from '../transport/transport.ts';
import { sendWithRetries, failedWith } from '../write/requests.ts';
import { bounded, createRequest, eventName, seriesRequest } from './event.ts';
import { EventRate } from './event-rate.ts';
import type { Reporter } from './event.ts';

export type EventDeps = Reporter & {
  readonly transport: Pick<KubeTransport, 'send'>;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** The time of day, which events show. */
  readonly now: () => Date;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly record: Recorder<typeof eventMetrics>;
  /** Called with the first failure since the last event that was written. */
  readonly reportFailure: (failure: unknown) => void;
};

export type KubeEvents = RecordEvents & {
  /** Drops new events, and waits up to 2 s until the recorded ones are written. */
  readonly close: () => Promise<void>;
};

/** Equal events: one object with a count. */
type Series = {
  readonly key: string;
  /** Empty for a cluster-scoped object. */
  readonly namespace: string;
  readonly event: ObjectEvent;
  name: string;
  first: Date;
  last: Date;
  count: number;
  /** How many of them the server has counted. */
  written: number;
  writes: number;
  state: 'idle' | 'pausing' | 'queued';
  cancelPause: () => void;
};

/** A series ends after this time without an event, as in client-go. */
const FINISHED_MS = 360_000;

const MAX_PAUSE_MS = 300_000;
const CLOSE_TIMEOUT_MS = 2000;

/** Writes events, those of each namespace within its share; counts each as written, dropped or failed. */
export function createEventRecorder(deps: EventDeps): KubeEvents {
  const recorder = new EventRecorder(deps);
  return {
    record: event => {
      try {
        recorder.record(event);
      } catch {
        deps.record.events({ outcome: 'failed' });
      }
    },
    close: () => recorder.close(),
  };
}

class EventRecorder {
  readonly #deps: EventDeps;
  /** In the order of their last events. */
  readonly #series = new Map<string, Series>();
  /** How many series there are of each namespace. */
  readonly #counts = new Map<string, number>();
  readonly #rate = new EventRate();
  readonly #writes = new FairLimit(MAX_EVENT_WRITES);
  readonly #abort = new AbortController();
  #queued = 0;
  /** Called when no write is queued any more. */
  #onWritten = (): void => undefined;
  #isFailing = false;
  #isClosed = false;

  constructor(deps: EventDeps) {
    this.#deps = deps;
  }

  record(given: ObjectEvent): void {
    const event = bounded(given);
    const { regarding, type, reason, action, note } = event;
    const { apiVersion, kind, namespace = '', name, uid } = regarding;
    const key = JSON.stringify([apiVersion, kind, namespace, name, uid, type, reason, action, note]);
    const now = this.#deps.now();
    this.#forgetFinished(now);
    const known = this.#series.get(key);
    if (this.#isClosed || !(known || this.#admits(namespace))) {
      this.#deps.record.events({ outcome: 'dropped' });
      return;
    }
    const series = known ?? this.#begin({ key, namespace, event, now });
    series.count++;
    series.last = now;
    this.#series.delete(key);
    this.#series.set(key, series);
    if (series.state === 'idle') this.#writeSoon(series);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const series of this.#series.values()) {
      if (series.state === 'pausing') this.#enqueue(series);
    }
    if (this.#queued > 0) {
      await new Promise<void>(resolve => {
        const cancel = this.#deps.clock.after(CLOSE_TIMEOUT_MS, resolve);
        this.#onWritten = () => {
          cancel();
          resolve();
        };
      });
    }
    for (const series of [...this.#series.values()]) this.#forget(series, 'dropped');
    this.#abort.abort();
  }

  #begin({ key, namespace, event, now }: BeginOptions): Series {
    const name = this.#newName(event, now);
    this.#counts.set(namespace, this.#countOf(namespace) + 1);
    return {
      key,
      namespace,
      event,
      name,
      first: now,
      last: now,
      count: 0,
      written: 0,
      writes: 0,
      state: 'idle',
      cancelPause: () => undefined,
    };
  }

  #newName(event: ObjectEvent, now: Date): string {
    const digits = Math.floor(this.#deps.random() * 2 ** 32).toString(16);
    return eventName(event, `${now.getTime().toString(16)}${digits.padStart(8, '0')}`);
  }

  /** Whether a new series of a namespace may begin: it has no more of them than it leaves to others. */
  #admits(namespace: string): boolean {
    const free = MAX_EVENT_SERIES - this.#series.size;
    return this.#countOf(namespace) < free && this.#rate.take(namespace, this.#deps.clock.now());
  }

  #countOf(namespace: string): number {
    return this.#counts.get(namespace) ?? 0;
  }

  /** The first event is written at once; later ones are collected for 1 s, 10 s, 100 s, then 300 s each. */
  #writeSoon(series: Series): void {
    if (series.writes === 0 || this.#isClosed) {
      this.#enqueue(series);
      return;
    }
    series.state = 'pausing';
    const ms = Math.min(1000 * 10 ** (series.writes - 1), MAX_PAUSE_MS);
    series.cancelPause = this.#deps.clock.after(ms, () => this.#enqueue(series));
  }

  #enqueue(series: Series): void {
    series.cancelPause();
    series.state = 'queued';
    this.#queued++;
    this.#writes.run([series.namespace], async () => {
      // Equal events that are recorded together are one request.
      await Promise.resolve();
      await this.#write(series);
      if (--this.#queued === 0) this.#onWritten();
    });
  }

  async #write(series: Series): Promise<void> {
    if (!this.#isKnown(series)) return;
    const { count } = series;
    try {
      await this.#send(series);
    } catch (failure) {
      if (!this.#isKnown(series)) return;
      if (series.written > 0 && failedWith(failure, 'NotFound')) {
        this.#restart(series);
        return;
      }
      if (!this.#isFailing) this.#deps.reportFailure(failure);
      this.#isFailing = true;
      this.#forget(series, 'failed');
      return;
    }
    this.#isFailing = false;
    if (!this.#isKnown(series)) return;
    this.#deps.record.events({ outcome: 'written' }, count - series.written);
    series.written = count;
    series.writes++;
    series.state = 'idle';
    if (series.count > count) this.#writeSoon(series);
  }

  #isKnown(series: Series): boolean {
    return this.#series.get(series.key) === series;
  }

  async #send(series: Series): Promise<void> {
    const request = series.written > 0 ? seriesRequest(series) : createRequest(series, this.#deps);
    await sendWithRetries({ ...request, signal: this.#abort.signal }, this.#deps);
  }

  /** The object was deleted: events that were not yet counted become a new one. */
  #restart(series: Series): void {
    series.count -= series.written;
    series.written = 0;
    series.first = series.last;
    series.name = this.#newName(series.event, series.last);
    this.#enqueue(series);
  }

  #forgetFinished(now: Date): void {
    for (const series of this.#series.values()) {
      if (now.getTime() - series.last.getTime() <= FINISHED_MS) return;
      if (series.count === series.written) this.#remove(series);
    }
  }

  #forget(series: Series, outcome: 'dropped' | 'failed'): void {
    series.cancelPause();
    this.#remove(series);
    const left = series.count - series.written;
    if (left > 0) this.#deps.record.events({ outcome }, left);
  }

  #remove({ key, namespace }: Series): void {
    this.#series.delete(key);
    const left = this.#countOf(namespace) - 1;
    if (left > 0) this.#counts.set(namespace, left);
    else this.#counts.delete(namespace);
  }
}

type BeginOptions = Pick<Series, 'key' | 'namespace' | 'event'> & { readonly now: Date };
