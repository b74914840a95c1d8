import { isReleased } from '../../store/lease.ts';
import type { Lease, LeaseHold } from '../../store/lease.ts';

/** The timing of leader election; all processes that share a lease must have the same. */
export type LeaseTiming = {
  /** How long after its last change, as another process saw it, that process may take the lease. */
  readonly durationMs: number;
  /** How long after it sent a successful write a process is the leader. */
  readonly holdMs: number;
  /** How often the leader writes the lease, and the others read it. */
  readonly retryMs: number;
  /** How soon a leader retries a write that failed. */
  readonly pauseMs: number;
  readonly requestMs: number;
  /** How long the work of a leader may take to end when leadership is lost, before the process must exit. */
  readonly endMs: number;
};

/**
 * The timing of every operator. Its effect, as the model in the tests finds it with requests that take up to 100 ms, and
 * as three processes on a real API server confirm:
 *
 * | the leader                   | it acts on for at most | another acts within      | none acts for at least   |
 * | ---------------------------- | ---------------------- | ------------------------ | ------------------------ |
 * | is stopped                   | as long as it needs    | 2.4 s after its release  | -                        |
 * | is killed                    | -                      | 12.4 s                   | 7 s                      |
 * | is frozen                    | - (it checks first)    | 12.4 s                   | 3 s                      |
 * | cannot reach the lease       | 7 s                    | 12.4 s                   | 3 s                      |
 * | ..., clocks 10 % too slow    | 7.8 s                  | 13.7 s                   | 1.3 s                    |
 * | does not end its work        | 7 s + 1 s, then exits  | 12.4 s                   | 2 s (0.3 s)              |
 * | any, after a series of lost  | -                      | 16 s after the last of   | -                        |
 * | and late requests            |                        | them had its effect      |                          |
 *
 * Two never lead at once as long as the rates of two clocks differ by less than durationMs / holdMs, which is 17 % each.
 * The lease costs each process about 30 short requests a minute. A server that is away for 1.7 s never costs leadership,
 * and neither does one that refuses connections for 4 s.
 */
export const LEASE_TIMING: LeaseTiming = {
  durationMs: 10_000,
  holdMs: 7000,
  retryMs: 2000,
  pauseMs: 500,
  requestMs: 2500,
  endMs: 1000,
};

/** What a process knows of a lease that it shares; all times are of its own clock. */
export type ElectionState = {
  /** The lease as last read, or undefined where it does not exist, and since when it is unchanged. */
  readonly seen: Seen | undefined;
  /** The leadership of this process, where it is the leader. */
  readonly term: Term | undefined;
  readonly nextRequestAt: number;
  /** Whether another process has written the lease since it was read, or a failed write of this process may have. */
  readonly isOutdated: boolean;
  /** A write of this process that failed, and may have taken effect or still take effect. */
  readonly unconfirmedWrite: LeaseHold | undefined;
  /** The most transitions ever seen. */
  readonly transitions: number;
};

type Seen = {
  readonly lease: Lease | undefined;
  readonly since: number;
  /** Whether this process wrote it and got the answer. */
  readonly isOurs: boolean;
};

/** One leadership from its beginning to its end. */
export type Term = {
  /** Later leaders have higher numbers, unless the lease was deleted while no process knew it. */
  readonly number: number;
  /** When it ends unless the lease is renewed before. */
  readonly until: number;
};

export const INITIAL: ElectionState = {
  seen: undefined,
  term: undefined,
  nextRequestAt: -Infinity,
  isOutdated: false,
  unconfirmedWrite: undefined,
  transitions: 0,
};

/** The next step of an election. */
export type ElectionStep =
  | { readonly do: 'read' }
  | { readonly do: 'write'; readonly hold: LeaseHold; readonly over: Lease | undefined }
  | { readonly do: 'wait'; readonly until: number }
  /** The leadership of this process has expired. */
  | { readonly do: 'end-term' };

/** The result of a step. */
export type ElectionResult =
  | { readonly got: 'read'; readonly lease: Lease | undefined }
  | { readonly got: 'written'; readonly lease: Lease; readonly sentAt: number }
  /** Another process has written it. */
  | { readonly got: 'conflict' }
  | { readonly got: 'no-answer'; readonly to: Extract<ElectionStep, { do: 'read' | 'write' }> };

export type Elector = { readonly holder: string; readonly timing: LeaseTiming };

/**
 * The next step; a process that may not become leader only reads. Leadership begins and is renewed only by a write over
 * the version of the lease that was read. Where there is no lease, one without a holder is created first, and taken only
 * after a full duration like any other: the leader before its deletion stops within that time.
 */
export function decide(
  state: ElectionState,
  now: number,
  { holder, timing }: Elector,
  may: 'lead' | 'read',
): ElectionStep {
  const { seen, term, nextRequestAt, isOutdated, transitions } = state;
  const { durationMs } = timing;
  const create = { do: 'write', hold: { holder: '', durationMs, transitions }, over: undefined } as const;
  const write = (number: number, over: Lease) =>
    ({ do: 'write', hold: { holder, durationMs, transitions: number }, over }) as const;
  if (term) {
    if (now >= term.until) return { do: 'end-term' };
    if (now < nextRequestAt) return { do: 'wait', until: Math.min(nextRequestAt, term.until) };
    if (isOutdated) return { do: 'read' };
    return seen?.lease ? write(term.number, seen.lease) : create;
  }
  let takeAt = Infinity;
  if (may === 'lead' && seen && !isOutdated) {
    if (!seen.lease) return create;
    takeAt = seen.since + minAgeMs(seen.lease, seen.isOurs, state.unconfirmedWrite, timing);
    if (now >= takeAt) return write(transitions + 1, seen.lease);
  }
  return now >= nextRequestAt ? { do: 'read' } : { do: 'wait', until: Math.min(nextRequestAt, takeAt) };
}

/** Another version of the operator may write a longer duration into the lease; the limit guards against a typo. */
const MAX_DURATION_MS = 60_000;

/**
 * How long after its last change a lease may be taken.
 *
 * | the lease                               | how long     | because                                       |
 * | --------------------------------------- | ------------ | --------------------------------------------- |
 * | written by this process, perhaps by a   | at once      | no other process has written it since         |
 * | write whose result is not known         |              |                                               |
 * | released                                | at once      | its holder has ended all work before          |
 * | held by another; without a holder; new  | a duration   | a leader may have acted until just before     |
 * | has the name of this process, but was   | a duration   | it was edited, or another process has the     |
 * | not written by it                       |              | same name                                     |
 */
function minAgeMs(
  lease: Lease,
  isOurs: boolean,
  unconfirmedWrite: LeaseHold | undefined,
  { durationMs }: LeaseTiming,
): number {
  const isUnconfirmed =
    unconfirmedWrite?.holder === lease.holder && unconfirmedWrite.transitions === lease.transitions;
  if (isOurs || isUnconfirmed || isReleased(lease)) return 0;
  return Math.max(durationMs, Math.min(lease.durationMs, MAX_DURATION_MS));
}

/** The next state. The jitter, from 0 to 1, spreads the requests of many processes. */
export function applyResult(
  before: ElectionState,
  result: ElectionResult,
  now: number,
  { holder, timing }: Elector,
  jitter: number,
): ElectionState {
  // A leadership that has expired is not renewed: its work must end before the next one begins.
  const isLate = before.term !== undefined && now >= before.term.until;
  const state = isLate ? endTerm(before) : before;
  const spread = 0.9 + 0.2 * jitter;
  const later = now + (state.term ? timing.pauseMs : timing.retryMs) * spread;
  switch (result.got) {
    case 'read':
      return afterRead(state, result.lease, now, holder, later);
    case 'written': {
      if (result.lease.holder !== holder) return afterRead(state, result.lease, now, holder, later);
      const written = afterWrite(state, result, now, timing, spread);
      return isLate ? endTerm(written) : written;
    }
    case 'conflict':
      return { ...state, nextRequestAt: now + timing.pauseMs * spread, isOutdated: true };
    case 'no-answer': {
      if (result.to.do === 'read') return { ...state, nextRequestAt: later };
      const unconfirmedWrite = result.to.over ? result.to.hold : state.unconfirmedWrite;
      return { ...state, nextRequestAt: later, unconfirmedWrite, isOutdated: true };
    }
  }
}

/** The same state without leadership. */
export function endTerm(state: ElectionState): ElectionState {
  return { ...state, term: undefined };
}

function afterRead(
  state: ElectionState,
  lease: Lease | undefined,
  now: number,
  holder: string,
  later: number,
): ElectionState {
  const { seen } = state;
  const isSame = seen && lease?.version === seen.lease?.version;
  const isOthers = lease !== undefined && lease.holder !== '' && lease.holder !== holder;
  const isTaken = isOthers || (lease !== undefined && isReleased(lease));
  // While this process is the leader no other takes the lease: if it was edited or deleted, it is written again.
  const term = isTaken ? undefined : state.term;
  return {
    seen: isSame ? seen : { lease, since: now, isOurs: false },
    term,
    nextRequestAt: term ? now : later,
    isOutdated: false,
    unconfirmedWrite: isOthers ? undefined : state.unconfirmedWrite,
    transitions: Math.max(state.transitions, lease?.transitions ?? 0),
  };
}

function afterWrite(
  { term, transitions }: ElectionState,
  { lease, sentAt }: Extract<ElectionResult, { got: 'written' }>,
  now: number,
  { holdMs, retryMs }: LeaseTiming,
  spread: number,
): ElectionState {
  // Counted from when it was sent: others may have read it at any time since.
  const until = sentAt + holdMs;
  return {
    seen: { lease, since: now, isOurs: true },
    term: now < until ? { number: term?.number ?? lease.transitions, until } : undefined,
    nextRequestAt: Math.max(now, sentAt + retryMs * spread),
    isOutdated: false,
    unconfirmedWrite: undefined,
    transitions: Math.max(transitions, lease.transitions),
  };
}
