import type { Clock } from '../../../api/clock.ts';
import type { ResourceKind } from '../../../api/key.ts';
import type { Activities, Activity } from '../../../telemetry/activity.ts';
import type { Log } from '../../../telemetry/log.ts';
import type { sourceMetrics } from '../../../telemetry/metrics.ts';
import type { GaugeReaders, Recorder } from '../../../telemetry/recorder.ts';
import { NEW } from './state.ts';
import type { Heard, ReflectorState } from './state.ts';

/** Where a source tells what it does. */
export type SourceTelemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof sourceMetrics> & { readonly record: Recorder<typeof sourceMetrics> };
  readonly activities: Activities;
};

type FailureReason = Parameters<Recorder<typeof sourceMetrics>['sourceFailures']>[0]['reason'];

/** Turns what the reflector of a kind does into metrics, lines of the log and an activity. */
export class KindObserver {
  readonly #kind: ResourceKind;
  readonly #telemetry: Pick<SourceTelemetry, 'log' | 'metrics'>;
  readonly #clock: Clock;
  #state: ReflectorState = NEW;
  #since: number;
  /** Reasons that the log has since all was well, and since when it was not. */
  readonly #told = new Set<string>();
  #troubledSince = 0;

  constructor(kind: ResourceKind, telemetry: Pick<SourceTelemetry, 'log' | 'metrics'>, clock: Clock) {
    this.#kind = kind;
    this.#telemetry = telemetry;
    this.#clock = clock;
    this.#since = clock.now();
  }

  activity(): Activity {
    const state = this.#state;
    const shown = state.is === 'waiting' ? `waiting after ${state.trouble.reason}` : WORDS[state.is];
    return { what: this.#kind, state: shown, forMs: this.#clock.now() - this.#since };
  }

  moved(before: ReflectorState, heard: Heard, after: ReflectorState): void {
    if (before.is !== after.is) this.#since = this.#clock.now();
    this.#state = after;
    this.#count(before, heard, after);
    this.#logServed(before, after);
    this.#logTrouble(after);
  }

  #count(before: ReflectorState, heard: Heard, after: ReflectorState): void {
    const { record } = this.#telemetry.metrics;
    const labels = { kind: this.#kind };
    if (heard.hear === 'page' && after.is === 'watching') record.sourceLists(labels);
    if (heard.hear === 'opened') record.sourceWatches(labels);
    if (heard.hear === 'change') record.sourceEvents(labels);
    const reason = reasonOf(before, heard, after);
    if (reason) record.sourceFailures({ ...labels, reason });
  }

  #logServed(before: ReflectorState, after: ReflectorState): void {
    if (before.known === after.known) return;
    const { log } = this.#telemetry;
    if (after.known === 'absence') log.info('the cluster does not serve a kind', { kind: this.#kind });
    else if (before.known === 'absence') log.info('the cluster serves a kind now', { kind: this.#kind });
  }

  #logTrouble(after: ReflectorState): void {
    const { log } = this.#telemetry;
    const isWell = after.listFailures === 0 && after.watchFailures === 0;
    if (isWell && this.#told.size > 0) {
      const seconds = Math.round((this.#clock.now() - this.#troubledSince) / 1000);
      log.info('the cluster can be read again', { kind: this.#kind, seconds });
      this.#told.clear();
    }
    if (isWell || after.is !== 'waiting' || this.#told.has(after.trouble.reason)) return;
    if (this.#told.size === 0) this.#troubledSince = this.#clock.now();
    this.#told.add(after.trouble.reason);
    const { reason, message } = after.trouble;
    log.warn('the cluster cannot be read', { kind: this.#kind, reason, error: message });
  }
}

const WORDS: Readonly<Record<Exclude<ReflectorState['is'], 'waiting'>, string>> = {
  new: 'beginning',
  listing: 'listing',
  asking: 'asking whether it is served',
  watching: 'watching',
  absent: 'not served',
  closed: 'closed',
};

/** That a kind is not found in one of its versions is no failure. */
function reasonOf(before: ReflectorState, heard: Heard, after: ReflectorState): FailureReason | undefined {
  if (heard.hear === 'silence') return 'Silent';
  if (after.is === 'waiting' && before.is !== 'waiting') return after.trouble.reason;
  return heard.hear === 'failure' && heard.reason === 'Expired' ? 'Expired' : undefined;
}
