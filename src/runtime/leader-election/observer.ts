import type { Lease } from '../../store/lease.ts';
import type { Activities } from '../../telemetry/activity.ts';
import type { Log } from '../../telemetry/log.ts';
import type { leaderMetrics } from '../../telemetry/metrics.ts';
import type { GaugeReaders } from '../../telemetry/metric-recorder.ts';
import type { ElectionState, Term } from './election.ts';

/** Where leader election is logged and measured. */
export type LeadershipTelemetry = {
  readonly log: Log;
  readonly metrics: GaugeReaders<typeof leaderMetrics>;
  readonly activities: Activities;
};

type Verb = 'read' | 'write';

/** Notified of leader election; it logs changes and failures that go on, not every request. */
export interface LeadershipObserver {
  registerGauge(isHeld: () => boolean, state: () => ElectionState, now: () => number): void;
  close(): void;
  /** A request ended; reads and writes are reported apart, since one may fail while the other does not. */
  requested(verb: Verb, answer: { readonly value: unknown } | { readonly error: unknown }): void;
  saw(lease: Lease | undefined): void;
  began(term: Term): void;
  lost(): void;
  failedToEnd(error: unknown): void;
  released(isDone: boolean): void;
}

/** Turns leader election into a gauge, activities and log lines. */
export function leadershipObserver(
  name: string,
  self: string,
  { log, metrics, activities }: LeadershipTelemetry,
): LeadershipObserver {
  const line = log.child({ lease: name, self });
  let ends: readonly (() => void)[] = [];
  /** How many requests have failed since one of the verb succeeded. */
  const failures: Record<Verb, number> = { read: 0, write: 0 };
  const logged = new Set<Verb>();
  let holder = '';
  return {
    registerGauge: (isHeld, state, now) => {
      ends = [
        metrics.readGauge('leads', () => [{ labels: { name }, value: isHeld() ? 1 : 0 }]),
        activities.add(`leadership ${name}`, () => [activityOf(isHeld(), state(), now())]),
      ];
    },
    close: () => ends.forEach(end => end()),
    requested: (verb, answer) => {
      if (!('error' in answer)) {
        failures[verb] = 0;
        if (logged.delete(verb)) line.info(MESSAGES[verb].recovered);
        return;
      }
      failures[verb]++;
      // A single one costs nothing: it is retried long before leadership expires.
      if (failures.read + failures.write < 2 || logged.has(verb)) return;
      logged.add(verb);
      line.warn(MESSAGES[verb].failed, { error: answer.error });
    },
    saw: lease => {
      const next = lease?.holder ?? '';
      if (next !== holder && next !== '' && next !== self)
        line.info('another process holds the lease', { holder: next });
      holder = next;
    },
    began: ({ number }) => line.info('became leader', { term: number }),
    lost: () => line.warn('lost leadership'),
    failedToEnd: error => line.error('the work of the leader did not end', { error }),
    released: isDone =>
      isDone ? line.info('released the lease') : line.warn('cannot release the lease: it will expire'),
  };
}

const MESSAGES: Readonly<Record<Verb, { readonly failed: string; readonly recovered: string }>> = {
  read: { failed: 'cannot read the lease', recovered: 'can read the lease again' },
  write: { failed: 'cannot write the lease', recovered: 'can write the lease again' },
};

function activityOf(isHeld: boolean, { seen }: ElectionState, now: number) {
  const forMs = seen && Math.round(now - seen.since);
  const what = isHeld ? 'this process' : (seen?.lease?.holder ?? '') || 'no process';
  const state = isHeld ? 'leader' : 'holder at the last change of the lease';
  return { what, state, ...(forMs === undefined ? {} : { forMs }) };
}
