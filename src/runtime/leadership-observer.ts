import type { Lease } from '../resources/lease.ts';
import type { Activities } from '../telemetry/activity.ts';
import type { Log } from '../telemetry/log.ts';
import type { leaderMetrics } from '../telemetry/metrics.ts';
import type { GaugeReaders } from '../telemetry/recorder.ts';
import type { LeaderState, Term } from './leader.ts';
import type { Answer } from './leadership-answer.ts';

/** Where leadership tells what becomes of it. */
export type LeadershipTelemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof leaderMetrics>;
  readonly activities: Activities;
};

type Request = 'read' | 'write';

/** Hears what becomes of leadership; lines are logged where something turns, not at each request. */
export interface LeadershipObserver {
  show(isHeld: () => boolean, state: () => LeaderState, now: () => number): void;
  hide(): void;
  /** What came of a request; reading may be possible where writing is not. */
  asked(to: Request, answer: Answer<unknown>): void;
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
  const failing = new Set<Request>();
  let holder = '';
  return {
    show: (isHeld, state, now) => {
      ends = [
        metrics.readGauge('leads', () => [{ labels: { name }, value: isHeld() ? 1 : 0 }]),
        activities.add(`leadership ${name}`, () => [activityOf(isHeld(), state(), now())]),
      ];
    },
    hide: () => ends.forEach(end => end()),
    asked: (to, answer) => {
      const hasFailed = failing.has(to);
      if ('error' in answer) {
        failing.add(to);
        if (!hasFailed) line.warn(WORDS[to].failing, { error: answer.error });
      } else if (failing.delete(to)) {
        line.info(WORDS[to].well);
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

const WORDS: Readonly<Record<Request, { readonly failing: string; readonly well: string }>> = {
  read: { failing: 'lease cannot be read', well: 'lease can be read again' },
  write: { failing: 'lease cannot be written', well: 'lease can be written again' },
};

function activityOf(isHeld: boolean, { seen }: LeaderState, now: number) {
  const forMs = seen && Math.round(now - seen.since);
  const what = isHeld ? 'this process' : (seen?.lease?.holder ?? '') || 'nobody';
  const state = isHeld ? 'leads' : 'held the lease when it last changed';
  return { what, state, ...(forMs === undefined ? {} : { forMs }) };
}
