import type { Clock } from '../../../api/clock.ts';
import type { eventMetrics } from '../../../telemetry/metrics.ts';
import type { Recorder } from '../../../telemetry/metric-recorder.ts';
import type { ObjectEvent, RecordEvents } from '../../resources.ts';
import type { KubeTransport } from '../transport/transport.ts';
import { sendWithRetries, failedWith } from '../write/requests.ts';
import { bounded, createRequest, eventName, seriesRequest } from './event.ts';
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

/** Rate limit for new series of all objects together. */
const RATE = { burst: 100, intervalMs: 1000 };

const MAX_SERIES = 1000;

/** A series ends after this time without an event, as in client-go. */
const FINISHED_MS = 360_000;

const MAX_PAUSE_MS = 300_000;
const CLOSE_TIMEOUT_MS = 2000;

/** Writes events one after the other; counts each as written, dropped or failed. */
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
  readonly #abort = new AbortController();
  #sent: Promise<void> = Promise.resolve();
  #bucketFullAt = -Infinity;
  #isFailing = false;
  #isClosed = false;

  constructor(deps: EventDeps) {
    this.#deps = deps;
  }

  record(given: ObjectEvent): void {
    const event = bounded(given);
    const { regarding, type, reason, action, note } = event;
    const { apiVersion, kind, namespace, name, uid } = regarding;
    const key = JSON.stringify([apiVersion, kind, namespace, name, uid, type, reason, action, note]);
    const now = this.#deps.now();
    this.#forgetFinished(now);
    const known = this.#series.get(key);
    if (this.#isClosed || !(known || this.#admits())) {
      this.#deps.record.events({ outcome: 'dropped' });
      return;
    }
    const series = known ?? this.#begin(key, event, now);
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
    await new Promise<void>(resolve => {
      const cancel = this.#deps.clock.after(CLOSE_TIMEOUT_MS, resolve);
      void this.#drained().then(() => {
        cancel();
        resolve();
      });
    });
    for (const series of [...this.#series.values()]) this.#forget(series, 'dropped');
    this.#abort.abort();
  }

  /** Resolves when the queue is empty. */
  async #drained(): Promise<void> {
    let awaited;
    do {
      awaited = this.#sent;
      await awaited;
    } while (awaited !== this.#sent);
  }

  #begin(key: string, event: ObjectEvent, now: Date): Series {
    const name = this.#newName(event, now);
    const counts = { count: 0, written: 0, writes: 0 };
    return {
      key,
      event,
      name,
      first: now,
      last: now,
      ...counts,
      state: 'idle',
      cancelPause: () => undefined,
    };
  }

  #newName(event: ObjectEvent, now: Date): string {
    const digits = Math.floor(this.#deps.random() * 2 ** 32).toString(16);
    return eventName(event, `${now.getTime().toString(16)}${digits.padStart(8, '0')}`);
  }

  /** Takes a token for a new series, if there is one. */
  #admits(): boolean {
    const now = this.#deps.clock.now();
    const fullAt = Math.max(this.#bucketFullAt, now) + RATE.intervalMs;
    if (fullAt - now > RATE.burst * RATE.intervalMs || this.#series.size >= MAX_SERIES) return false;
    this.#bucketFullAt = fullAt;
    return true;
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
    this.#sent = this.#sent.then(() => this.#write(series));
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
      if (series.count > series.written || now.getTime() - series.last.getTime() <= FINISHED_MS) return;
      this.#series.delete(series.key);
    }
  }

  #forget(series: Series, outcome: 'dropped' | 'failed'): void {
    series.cancelPause();
    this.#series.delete(series.key);
    const left = series.count - series.written;
    if (left > 0) this.#deps.record.events({ outcome }, left);
  }
}
