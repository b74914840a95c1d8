import type { Clock } from '../../../api/clock.ts';
import type { eventMetrics } from '../../../telemetry/metrics.ts';
import type { Recorder } from '../../../telemetry/recorder.ts';
import type { ObjectEvent, RecordEvents } from '../../events.ts';
import type { KubeTransport } from '../transport/transport.ts';
import { askRetrying, failedFor } from '../write/requests.ts';
import { bounded, createRequest, eventName, seriesRequest } from './event.ts';
import type { Reporter } from './event.ts';

export type EventDeps = Reporter & {
  readonly transport: Pick<KubeTransport, 'ask'>;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** The time of day, which events show. */
  readonly now: () => Date;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly record: Recorder<typeof eventMetrics>;
  /** Called when events begin to fail, and not again before one has succeeded. */
  readonly reportFailure: (failure: unknown) => void;
};

/** Events on an API server. */
export type KubeEvents = RecordEvents & {
  /** Takes no more, and waits up to 2 s until what was recorded is written. */
  readonly close: () => Promise<void>;
};

/** Equal events, which are one object of the API server with a count. */
type Series = {
  readonly key: string;
  readonly event: ObjectEvent;
  name: string;
  first: Date;
  last: Date;
  count: number;
  /** How many of them the server knows of. */
  written: number;
  writes: number;
  state: 'idle' | 'pausing' | 'queued';
  cancelPause: () => void;
};

/** New events of all objects together; equal ones are not limited. */
const RATE = { burst: 100, intervalMs: 1000 };

/** What is in memory is bounded, however long the server does not answer. */
const MAX_SERIES = 1000;

/** A series ends when nothing was added for so long, as in client-go: what comes then is a new event. */
const FINISHED_MS = 360_000;

const MAX_PAUSE_MS = 300_000;
const CLOSE_WITHIN_MS = 2000;

/** Records events by one request after the other; each counts as written, dropped or failed in the end. */
export function eventsOn(deps: EventDeps): KubeEvents {
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
  /** The one that was added to last is last. */
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
      const cancel = this.#deps.clock.after(CLOSE_WITHIN_MS, resolve);
      void this.#drained().then(() => {
        cancel();
        resolve();
      });
    });
    for (const series of [...this.#series.values()]) this.#forget(series, 'dropped');
    this.#abort.abort();
  }

  /** Resolves when no request is left, not even one that another has caused. */
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

  /** Whether there is room for one more series; if so, it counts. */
  #admits(): boolean {
    const now = this.#deps.clock.now();
    const fullAt = Math.max(this.#bucketFullAt, now) + RATE.intervalMs;
    if (fullAt - now > RATE.burst * RATE.intervalMs || this.#series.size >= MAX_SERIES) return false;
    this.#bucketFullAt = fullAt;
    return true;
  }

  /** The first is written at once, then more are gathered: for 1 s, 10 s, 100 s, and 300 s, or until closing. */
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
      if (series.written > 0 && failedFor(failure, 'NotFound')) {
        this.#beginAnew(series);
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

  /** What was written counts, whatever becomes of the series meanwhile. */
  #isKnown(series: Series): boolean {
    return this.#series.get(series.key) === series;
  }

  async #send(series: Series): Promise<void> {
    const request = series.written > 0 ? seriesRequest(series) : createRequest(series, this.#deps);
    await askRetrying({ ...request, signal: this.#abort.signal }, this.#deps);
  }

  /** Somebody deleted the event: what the server does not know of begins a new one. */
  #beginAnew(series: Series): void {
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
