import { isReleased } from '../../resources/lease.ts';
import type { Lease, LeaseHold } from '../../resources/lease.ts';

/** The timing of an election; all who share a lease must have the same. */
export type LeaseTiming = {
  /** For how long others leave a lease alone after they saw it change. */
  readonly durationMs: number;
  /** For how long a process leads after it sent a write that succeeded. */
  readonly holdMs: number;
  /** How often the leader writes the lease, and the others read it. */
  readonly retryMs: number;
  /** How soon a leader retries a write that failed. */
  readonly pauseMs: number;
  readonly requestMs: number;
  /** How long the work of a leader may take to end when leadership is lost; then the process must end. */
  readonly endMs: number;
};

/**
 * The timing of every process of ours. What it leads to, as the model in the tests finds it with requests that take up to
 * 100 ms, and three processes on a real API server confirm:
 *
 * | what becomes of the leader   | it acts on for at most | another acts within      | nobody acts for at least |
 * | ---------------------------- | ---------------------- | ------------------------ | ------------------------ |
 * | it is stopped                | as long as it needs    | 2.4 s after its release  | -                        |
 * | it is killed                 | -                      | 12.4 s                   | 7 s                      |
 * | it is frozen                 | - (it checks first)    | 12.4 s                   | 3 s                      |
 * | it cannot reach the lease    | 7 s                    | 12.4 s                   | 3 s                      |
 * | ..., clocks 10 % too slow    | 7.8 s                  | 13.7 s                   | 1.3 s                    |
 * | it does not end its work     | 7 s + 1 s, then exits  | 12.4 s                   | 2 s (0.3 s)              |
 * | anything, after a storm of   | -                      | 16 s after the last of   | -                        |
 * | lost and late requests       |                        | them had its effect      |                          |
 *
 * Two never lead at once as long as the rates of two clocks differ by less than durationMs / holdMs, which is 17 % each.
 * The lease costs each process about 30 short requests a minute. A server that is away for 1.7 s never costs leadership,
 * and one that refuses connections for 4 s does not either.
 */
export const LEASE_TIMING: LeaseTiming = {
  durationMs: 10_000,
  holdMs: 7000,
  retryMs: 2000,
  pauseMs: 500,
  requestMs: 2500,
  endMs: 1000,
};

/** What a process knows of a lease that it shares; every time in it is one of its own clock. */
export type ElectionState = {
  /** The lease as last seen (undefined: it does not exist), and since when it has been seen so. */
  readonly seen: Seen | undefined;
  /** Our leadership, where we have it. */
  readonly term: Term | undefined;
  readonly nextRequestAt: number;
  /** Whether somebody has written the lease since we saw it, or a write of ours may have. */
  readonly isOutdated: boolean;
  /** A write of ours that failed, and may have been done all the same, or may be yet. */
  readonly doubt: LeaseHold | undefined;
  /** The most transitions ever seen. */
  readonly transitions: number;
};

type Seen = {
  readonly lease: Lease | undefined;
  readonly since: number;
  /** Whether we wrote it, which we know because we got the answer. */
  readonly isOurs: boolean;
};

/** One leadership from its beginning to its end. */
export type Term = {
  /** Later leaders have higher ones, as long as somebody remembers the last. */
  readonly number: number;
  /** It ends then unless the lease is renewed before. */
  readonly until: number;
};

export const INITIAL: ElectionState = {
  seen: undefined,
  term: undefined,
  nextRequestAt: -Infinity,
  isOutdated: false,
  doubt: undefined,
  transitions: 0,
};

/** What to do next. */
export type ElectionStep =
  | { readonly do: 'read' }
  | { readonly do: 'write'; readonly hold: LeaseHold; readonly over: Lease | undefined }
  | { readonly do: 'wait'; readonly until: number }
  /** Our leadership has expired. */
  | { readonly do: 'end-term' };

/** What came of it. */
export type ElectionNews =
  | { readonly got: 'read'; readonly lease: Lease | undefined }
  | { readonly got: 'written'; readonly lease: Lease; readonly sentAt: number }
  /** Another process had written it. */
  | { readonly got: 'conflict' }
  | { readonly got: 'no-answer'; readonly to: Extract<ElectionStep, { do: 'read' | 'write' }> };

export type Elector = { readonly holder: string; readonly timing: LeaseTiming };

/**
 * What to do now; who may not lead only reads. Leadership begins and goes on only by a write over a version of the lease
 * that was seen. Where there is no lease, one that nobody holds is created first, and then it has to stand for a duration
 * like any other: whoever led before the deletion stops before that.
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
    takeAt = seen.since + untouchedMs(seen.lease, seen.isOurs, state.doubt, timing);
    if (now >= takeAt) return write(transitions + 1, seen.lease);
  }
  return now >= nextRequestAt ? { do: 'read' } : { do: 'wait', until: Math.min(nextRequestAt, takeAt) };
}

/** Another version of us may have a longer duration and say so in the lease; a typo must not count. */
const MAX_DURATION_MS = 60_000;

/**
 * For how long a lease is left alone after it was first seen as it is.
 *
 * | what is seen                            | for how long | because                                       |
 * | --------------------------------------- | ------------ | --------------------------------------------- |
 * | ours, or ours by a write in doubt       | not at all   | nobody else has written it since              |
 * | released                                | not at all   | its holder has ended all work before          |
 * | another's; nobody's; created just now   | a duration   | somebody may have led until just before       |
 * | by our name, but not ours               | a duration   | somebody edits it, or has our name            |
 */
function untouchedMs(
  lease: Lease,
  isOurs: boolean,
  doubt: LeaseHold | undefined,
  { durationMs }: LeaseTiming,
): number {
  const isDoubted = doubt?.holder === lease.holder && doubt.transitions === lease.transitions;
  if (isOurs || isDoubted || isReleased(lease)) return 0;
  return Math.max(durationMs, Math.min(lease.durationMs, MAX_DURATION_MS));
}

/** The next state. The jitter, from 0 to 1, spreads what many do. */
export function learn(
  before: ElectionState,
  news: ElectionNews,
  now: number,
  { holder, timing }: Elector,
  jitter: number,
): ElectionState {
  // A leadership that has ended is not continued: what it led must end before the next begins.
  const isLate = before.term !== undefined && now >= before.term.until;
  const state = isLate ? endTerm(before) : before;
  const spread = 0.9 + 0.2 * jitter;
  const later = now + (state.term ? timing.pauseMs : timing.retryMs) * spread;
  switch (news.got) {
    case 'read':
      return afterRead(state, news.lease, now, holder, later);
    case 'written': {
      if (news.lease.holder !== holder) return afterRead(state, news.lease, now, holder, later);
      const written = afterWrite(state, news, now, timing, spread);
      return isLate ? endTerm(written) : written;
    }
    case 'conflict':
      return { ...state, nextRequestAt: now + timing.pauseMs * spread, isOutdated: true };
    case 'no-answer': {
      if (news.to.do === 'read') return { ...state, nextRequestAt: later };
      const doubt = news.to.over ? news.to.hold : state.doubt;
      return { ...state, nextRequestAt: later, doubt, isOutdated: true };
    }
  }
}

/** The same without our leadership. */
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
  // As long as we lead, nobody else takes it: what is edited or deleted meanwhile is written again.
  const term = isTaken ? undefined : state.term;
  return {
    seen: isSame ? seen : { lease, since: now, isOurs: false },
    term,
    nextRequestAt: term ? now : later,
    isOutdated: false,
    doubt: isOthers ? undefined : state.doubt,
    transitions: Math.max(state.transitions, lease?.transitions ?? 0),
  };
}

function afterWrite(
  { term, transitions }: ElectionState,
  { lease, sentAt }: Extract<ElectionNews, { got: 'written' }>,
  now: number,
  { holdMs, retryMs }: LeaseTiming,
  spread: number,
): ElectionState {
  // It counts from when it was sent: others may have seen it at any time since.
  const until = sentAt + holdMs;
  return {
    seen: { lease, since: now, isOurs: true },
    term: now < until ? { number: term?.number ?? lease.transitions, until } : undefined,
    nextRequestAt: Math.max(now, sentAt + retryMs * spread),
    isOutdated: false,
    doubt: undefined,
    transitions: Math.max(transitions, lease.transitions),
  };
}
