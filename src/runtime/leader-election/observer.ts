import type { Lease } from '../../resources/lease.ts';
import type { Activities } from '../../telemetry/activity.ts';
import type { Log } from '../../telemetry/log.ts';
import type { leaderMetrics } from '../../telemetry/metrics.ts';
import type { GaugeReaders } from '../../telemetry/recorder.ts';
import type { ElectionState, Term } from './election.ts';

/** Where leader election is logged and measured. */
export type LeadershipTelemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof leaderMetrics>;
  readonly activities: Activities;
};

type Verb = 'read' | 'write';

/** Notified of what becomes of leadership; lines are logged where something changes, not for each request. */
export interface LeadershipObserver {
  show(isHeld: () => boolean, state: () => ElectionState, now: () => number): void;
  hide(): void;
  /** What came of a request; reading may be possible where writing is not. */
  requested(verb: Verb, answer: { readonly value: unknown } | { readonly error: unknown }): void;
  saw(lease: Lease | undefined): void;
  began(term: Term): void;
  lost(): void;
  failedToEnd(error: unknown): void;
  released(isDone: boolean): void;
}

/** Turns what becomes of leadership into a gauge, activities and lines of the log. */
export function leadershipObserver(
  name: string,
  self: string,
  { log, metrics, activities }: LeadershipTelemetry,
): LeadershipObserver {
  const line = log.child({ lease: name, self });
  let ends: readonly (() => void)[] = [];
  const failing = new Set<Verb>();
  let holder = '';
  return {
    show: (isHeld, state, now) => {
      ends = [
        metrics.readGauge('leads', () => [{ labels: { name }, value: isHeld() ? 1 : 0 }]),
        activities.add(`leadership ${name}`, () => [activityOf(isHeld(), state(), now())]),
      ];
    },
    hide: () => ends.forEach(end => end()),
    requested: (verb, answer) => {
      const hasFailed = failing.has(verb);
      if ('error' in answer) {
        failing.add(verb);
        if (!hasFailed) line.warn(MESSAGES[verb].failing, { error: answer.error });
      } else if (failing.delete(verb)) {
        line.info(MESSAGES[verb].well);
      }
    },
    saw: lease => {
      const next = lease?.holder ?? '';
      if (next !== holder && next !== '' && next !== self) line.info('lease is held', { holder: next });
      holder = next;
    },
    began: ({ number }) => line.info('leading', { term: number }),
    lost: () => line.warn('not leading any more'),
    failedToEnd: error => line.error('what was led does not end', { error }),
    released: isDone =>
      isDone ? line.info('lease is released') : line.warn('lease could not be released, and will run out'),
  };
}

const MESSAGES: Readonly<Record<Verb, { readonly failing: string; readonly well: string }>> = {
  read: { failing: 'lease cannot be read', well: 'lease can be read again' },
  write: { failing: 'lease cannot be written', well: 'lease can be written again' },
};

function activityOf(isHeld: boolean, { seen }: ElectionState, now: number) {
  const forMs = seen && Math.round(now - seen.since);
  const what = isHeld ? 'this process' : (seen?.lease?.holder ?? '') || 'nobody';
  const state = isHeld ? 'leads' : 'held the lease when it last changed';
  return { what, state, ...(forMs === undefined ? {} : { forMs }) };
}
