import type { Clock } from '../../api/clock.ts';
import type { eventMetrics } from '../../telemetry/metrics.ts';
import type { Recorder } from '../../telemetry/recorder.ts';
import type { TellEvents, Told } from '../events.ts';
import { countingEvent, creatingEvent, fitting } from './events-body.ts';
import type { Reporter } from './events-body.ts';
import { EventLimit } from './events-limit.ts';
import { Outbox } from './events-outbox.ts';
import { Series } from './events-series.ts';
import type { KubeTransport } from './transport.ts';
import { failedFor } from './write/requests.ts';

/** What is needed to tell events. */
export type EventPorts = Reporter & {
  readonly transport: Pick<KubeTransport, 'ask'>;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  /** The time of day, which events show. */
  readonly now: () => Date;
  /** At least 0, less than 1. */
  readonly random: () => number;
  readonly record: Recorder<typeof eventMetrics>;
  /** Told when events begin to fail, and not again before one has come through. */
  readonly reportFailure: (failure: unknown) => void;
};

/** Events on an API server. */
export type KubeEvents = TellEvents & {
  /** Takes no more, and waits a moment until what was told is written. */
  readonly close: () => Promise<void>;
};

const MOST_SERIES = 1000;

/**
 * Tells events as objects of an API server. Equal ones are counted in one object. Their number is bounded, in memory
 * and on the server; each that is told counts as written, dropped or failed at last.
 */
export function eventsOn(ports: EventPorts): KubeEvents {
  const teller = new Teller(ports);
  return {
    tell: told => {
      try {
        teller.tell(told);
      } catch {
        ports.record.events({ outcome: 'failed' });
      }
    },
    close: () => teller.close(),
  };
}

class Teller {
  readonly #ports: EventPorts;
  readonly #limit = new EventLimit();
  /** Whichever was added to last is last. */
  readonly #series = new Map<string, Series>();
  readonly #pauses = new Map<Series, () => void>();
  readonly #outbox: Outbox<Series>;
  #isClosed = false;

  constructor(ports: EventPorts) {
    this.#ports = ports;
    this.#outbox = new Outbox({
      ...ports,
      send: (series, signal) => this.#write(series, signal),
      giveUp: series => this.#forget(series, 'failed'),
    });
  }

  tell(raw: Told): void {
    const told = fitting(raw);
    const { regarding, type, reason, action, note } = told;
    const object = JSON.stringify([
      regarding.apiVersion,
      regarding.kind,
      regarding.namespace,
      regarding.name,
    ]);
    const key = JSON.stringify([object, regarding.uid, type, reason, action, note]);
    const now = this.#ports.now();
    this.#forgetIdle(now);
    const series = this.#series.get(key) ?? this.#begin(key, told, object, now);
    if (!series || this.#isClosed) {
      this.#ports.record.events({ outcome: 'dropped' });
      return;
    }
    series.add(now);
    this.#series.delete(key);
    this.#series.set(key, series);
    this.#writeSoon(series);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [series, cancel] of this.#pauses) {
      cancel();
      this.#outbox.add(series);
    }
    this.#pauses.clear();
    await this.#outbox.close();
    for (const series of [...this.#series.values()]) this.#forget(series, 'dropped');
  }

  #begin(key: string, told: Told, object: string, now: Date): Series | undefined {
    if (this.#isClosed || this.#outbox.isFull()) return undefined;
    if (!this.#limit.admits(object, this.#ports.clock.now())) return undefined;
    this.#makeRoom();
    return new Series(key, told, this.#unique(now), now);
  }

  #unique(now: Date): string {
    const digits = Math.floor(this.#ports.random() * 2 ** 32).toString(16);
    return `${now.getTime().toString(16)}${digits.padStart(8, '0')}`;
  }

  /** More of the same are gathered for a while, but the first is written at once. */
  #writeSoon(series: Series): void {
    if (this.#pauses.has(series) || this.#outbox.has(series)) return;
    if (series.pauseMs === 0) this.#outbox.add(series);
    else this.#writeLater(series);
  }

  #writeLater(series: Series): void {
    const write = () => {
      this.#pauses.delete(series);
      this.#outbox.add(series);
    };
    this.#pauses.set(series, this.#ports.clock.after(series.pauseMs, write));
  }

  async #write(series: Series, signal: AbortSignal): Promise<void> {
    const event = series.event();
    const request = series.isThere ? countingEvent(event) : creatingEvent(event, this.#ports);
    try {
      await this.#ports.transport.ask({ ...request, signal });
    } catch (failure) {
      if (series.isThere && failedFor(failure, 'NotFound')) {
        await this.#writeAnew(series, signal);
        return;
      }
      if (series.isThere || !failedFor(failure, 'Conflict')) throw failure;
      // An earlier try has come through, without an answer and perhaps with fewer.
      if (event.count > 1) await this.#ports.transport.ask({ ...countingEvent(event), signal });
    }
    if (this.#series.get(series.key) !== series) return;
    this.#ports.record.events({ outcome: 'written' }, series.noteWritten(event));
    if (series.unwritten > 0 && !this.#isClosed) this.#writeLater(series);
  }

  /** The event is not there any more: what the server does not know of begins a new one. */
  async #writeAnew(series: Series, signal: AbortSignal): Promise<void> {
    series.restart(this.#unique(this.#ports.now()));
    await this.#write(series, signal);
  }

  #makeRoom(): void {
    for (const oldest of this.#series.values()) {
      if (this.#series.size < MOST_SERIES) return;
      if (!this.#outbox.has(oldest)) this.#forget(oldest, 'dropped');
    }
  }

  #forgetIdle(now: Date): void {
    for (const series of this.#series.values()) {
      if (!series.isIdle(now)) return;
      this.#forget(series, 'dropped');
    }
  }

  /** Its events that were not written are told for the last time. */
  #forget(series: Series, outcome: 'dropped' | 'failed'): void {
    this.#pauses.get(series)?.();
    this.#pauses.delete(series);
    this.#outbox.remove(series);
    if (!this.#series.delete(series.key)) return;
    if (series.unwritten > 0) this.#ports.record.events({ outcome }, series.unwritten);
  }
}
