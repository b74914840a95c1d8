import type { Clock } from '../../api/clock.ts';
import type { Activities, Activity } from '../../telemetry/activity.ts';
import type { Log } from '../../telemetry/log.ts';
import type { sourceMetrics } from '../../telemetry/metrics.ts';
import type { GaugeReaders, Recorder } from '../../telemetry/metric-recorder.ts';
import { NEW } from './state.ts';
import type { ReflectorEvent, ReflectorState } from './state.ts';

/** Where a source logs, counts and shows what it does. */
export type SourceTelemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof sourceMetrics> & { readonly record: Recorder<typeof sourceMetrics> };
  readonly activities: Activities;
};

type FailureReason = Parameters<Recorder<typeof sourceMetrics>['sourceFailures']>[0]['reason'];

type KindTelemetry = Pick<SourceTelemetry, 'log'> & {
  readonly metrics: Pick<SourceTelemetry['metrics'], 'record'>;
};

/** Turns the steps of a reflector into metrics, log lines and an activity. */
export class KindObserver {
  readonly #kind: string;
  readonly #telemetry: KindTelemetry;
  readonly #clock: Clock;
  #state: ReflectorState = NEW;
  #since: number;
  /** The reasons that were logged since the kind could last be read. */
  readonly #logged = new Set<string>();
  #failingSince = 0;

  constructor(kind: string, telemetry: KindTelemetry, clock: Clock) {
    this.#kind = kind;
    this.#telemetry = telemetry;
    this.#clock = clock;
    this.#since = clock.now();
  }

  activity(): Activity {
    const state = this.#state;
    const shown = state.is === 'waiting' ? `waiting after ${state.failure.reason}` : state.is;
    return { what: this.#kind, state: shown, forMs: this.#clock.now() - this.#since };
  }

  moved(before: ReflectorState, event: ReflectorEvent, after: ReflectorState): void {
    if (before.is !== after.is) this.#since = this.#clock.now();
    this.#state = after;
    this.#count(before, event, after);
    this.#logServed(before, after);
    this.#logFailure(after);
  }

  #count(before: ReflectorState, event: ReflectorEvent, after: ReflectorState): void {
    const { record } = this.#telemetry.metrics;
    const labels = { kind: this.#kind };
    if (event.event === 'page' && after.is === 'watching') record.sourceLists(labels);
    if (event.event === 'opened') record.sourceWatches(labels);
    if (event.event === 'change') record.sourceEvents(labels);
    const reason = reasonOf(before, event, after);
    if (reason) record.sourceFailures({ ...labels, reason });
  }

  #logServed(before: ReflectorState, after: ReflectorState): void {
    if (before.known === after.known) return;
    const { log } = this.#telemetry;
    if (after.known === 'not-served') log.info('the cluster does not serve a kind', { kind: this.#kind });
    else if (before.known === 'not-served') log.info('the cluster serves a kind now', { kind: this.#kind });
  }

  #logFailure(after: ReflectorState): void {
    const { log } = this.#telemetry;
    const isWell = after.listFailures === 0 && after.watchFailures === 0;
    if (isWell && this.#logged.size > 0) {
      const seconds = Math.round((this.#clock.now() - this.#failingSince) / 1000);
      log.info('the cluster can be read again', { kind: this.#kind, seconds });
      this.#logged.clear();
    }
    if (isWell || after.is !== 'waiting' || this.#logged.has(after.failure.reason)) return;
    if (this.#logged.size === 0) this.#failingSince = this.#clock.now();
    const { reason, message } = after.failure;
    this.#logged.add(reason);
    log.warn('the cluster cannot be read', { kind: this.#kind, reason, error: message });
  }
}

/** A 404 in one version of a kind is not a failure: the next version is tried. */
function reasonOf(
  before: ReflectorState,
  event: ReflectorEvent,
  after: ReflectorState,
): FailureReason | undefined {
  if (event.event === 'idle') return 'Silent';
  if (after.is === 'waiting' && before.is !== 'waiting') return after.failure.reason;
  return event.event === 'failure' && event.reason === 'Expired' ? 'Expired' : undefined;
}
