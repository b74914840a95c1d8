import { isReleased } from '../resources/lease.ts';
import type { Lease, LeaseHold } from '../resources/lease.ts';
import type { LeaseTiming } from './leader-timing.ts';

/** What a process knows of a lease that it shares; every time in it is one of its own clock. */
export type LeaderState = {
  /** The lease as it was when last seen (nothing: not there), and since when it has been seen so. */
  readonly seen: Seen | undefined;
  /** Our leadership, where we have it. */
  readonly term: Term | undefined;
  /** When to ask next. */
  readonly askAt: number;
  /** Whether somebody has written the lease since we saw it, or a write of ours may have. */
  readonly isOutdated: boolean;
  /** A write of ours that failed, and may have been done all the same, or may be yet. */
  readonly doubt: LeaseHold | undefined;
  /** The most transitions that were ever seen. */
  readonly transitions: number;
};

type Seen = {
  readonly lease: Lease | undefined;
  readonly since: number;
  /** When it was last read or written. */
  readonly checkedAt: number;
  /** Whether it was us who wrote it, which we know because we got the answer. */
  readonly isOurs: boolean;
  /** Whether nothing else was seen before. */
  readonly isFirst: boolean;
};

/** One leadership from its beginning to its end. */
export type Term = {
  /** Those who lead later have higher ones, as long as nobody deletes the lease. */
  readonly number: number;
  /** It ends then if nothing is written before. */
  readonly until: number;
};

/** Knowing nothing. */
export const UNKNOWING: LeaderState = {
  seen: undefined,
  term: undefined,
  askAt: -Infinity,
  isOutdated: false,
  doubt: undefined,
  transitions: 0,
};

/** What to do next. */
export type LeaderStep =
  | { readonly do: 'read' }
  | { readonly do: 'write'; readonly hold: LeaseHold; readonly over: Lease | undefined }
  /** Until then, unless something happens before. */
  | { readonly do: 'wait'; readonly until: number }
  /** Our leadership has run out. */
  | { readonly do: 'end-term' };

/** What came of it. */
export type LeaderNews =
  | { readonly got: 'read'; readonly lease: Lease | undefined }
  | { readonly got: 'written'; readonly lease: Lease; readonly sentAt: number }
  /** Somebody else had written it. */
  | { readonly got: 'beaten' }
  | { readonly got: 'no-answer'; readonly to: Extract<LeaderStep, { do: 'read' | 'write' }> };

/** Who elects, and how. */
export type Elector = { readonly holder: string; readonly timing: LeaseTiming };

/** What to do now. Who may not lead only looks on. */
export function decide(
  state: LeaderState,
  now: number,
  { holder, timing }: Elector,
  may: 'lead' | 'look',
): LeaderStep {
  const { seen, term, askAt, isOutdated } = state;
  const hold = (transitions: number) => ({ holder, durationMs: timing.durationMs, transitions });
  if (term) {
    if (now >= term.until) return { do: 'end-term' };
    if (now < askAt) return { do: 'wait', until: Math.min(askAt, term.until) };
    return isOutdated ? { do: 'read' } : { do: 'write', hold: hold(term.number), over: seen?.lease };
  }
  const isOpen = may === 'lead' && seen && !isOutdated && !isForgotten(seen, now, timing);
  const takeAt = isOpen ? seen.since + forbearance(seen, state, timing) : Infinity;
  if (isOpen && now >= takeAt) return { do: 'write', hold: hold(state.transitions + 1), over: seen.lease };
  return now >= askAt ? { do: 'read' } : { do: 'wait', until: Math.min(askAt, takeAt) };
}

/** Whoever has a longer one, such as another version of us, may say so in the lease; a slip of the pen must not count. */
const LONGEST_DURATION_MS = 60_000;

/**
 * For how long a lease is left alone after it was first seen as it is.
 *
 * | what is seen                          | for how long             | because                                             |
 * | ------------------------------------- | ------------------------ | --------------------------------------------------- |
 * | ours, or ours by a write in doubt     | not at all               | nobody else has written it since                    |
 * | released                              | not at all               | its holder has ended all work before                |
 * | another's; held by nobody; gone later | a duration               | somebody may have written it just before            |
 * | by our name, but not ours             | a duration               | somebody edits it, or has our name                  |
 * | not there, at the first look          | two retries              | a leader who lives would have written it anew       |
 */
function forbearance(
  { lease, isOurs, isFirst }: Seen,
  { doubt }: LeaderState,
  { durationMs, retryMs }: LeaseTiming,
): number {
  if (!lease) return isFirst ? 2 * retryMs : durationMs;
  if (isOurs || isReleased(lease) || isOf(doubt, lease)) return 0;
  return Math.max(durationMs, Math.min(lease.durationMs, LONGEST_DURATION_MS));
}

function isOf(hold: LeaseHold | undefined, lease: Lease): boolean {
  return hold?.holder === lease.holder && hold.transitions === lease.transitions;
}

/** What is known after some news. The jitter, from 0 to 1, spreads what many do. */
export function learn(
  before: LeaderState,
  news: LeaderNews,
  now: number,
  { holder, timing }: Elector,
  jitter: number,
): LeaderState {
  const isLate = before.term !== undefined && now >= before.term.until;
  const state = isLate ? endTerm(before) : before;
  const spread = 0.9 + 0.2 * jitter;
  const later = now + (state.term ? timing.pauseMs : timing.retryMs) * spread;
  switch (news.got) {
    case 'read':
      return afterRead(state, news.lease, now, { holder, timing, later });
    case 'written':
      // A leadership that has ended is not continued: what it led must end before the next begins.
      return isLate
        ? endTerm(afterWrite(state, news, now, timing, spread))
        : afterWrite(state, news, now, timing, spread);
    case 'beaten':
      return { ...state, askAt: now + timing.pauseMs * spread, isOutdated: true };
    case 'no-answer':
      if (news.to.do === 'read') return { ...state, askAt: later };
      return { ...state, askAt: later, doubt: news.to.hold, isOutdated: true };
  }
}

/** What is known when our leadership has ended: the same but for that. */
export function endTerm(state: LeaderState): LeaderState {
  return { ...state, term: undefined };
}

function afterRead(
  state: LeaderState,
  lease: Lease | undefined,
  now: number,
  { holder, timing, later }: Elector & { readonly later: number },
): LeaderState {
  const { seen } = state;
  const isSame = seen && isAsSeen(lease, seen, state, now, timing);
  const isOthers = lease !== undefined && lease.holder !== '' && lease.holder !== holder;
  const isTaken = isOthers || (lease !== undefined && isReleased(lease));
  // As long as we lead, all others forbear: what is edited or deleted meanwhile is simply written again.
  const term = isTaken ? undefined : state.term;
  return {
    seen: isSame
      ? { ...seen, checkedAt: now }
      : { lease, since: now, checkedAt: now, isOurs: false, isFirst: !seen },
    term,
    askAt: term ? now : later,
    isOutdated: false,
    doubt: isOthers ? undefined : state.doubt,
    transitions: Math.max(state.transitions, lease?.transitions ?? 0),
  };
}

/** What is not there has no version: it counts as the same only if nobody can have led in between. */
function isAsSeen(
  lease: Lease | undefined,
  seen: Seen,
  { isOutdated }: LeaderState,
  now: number,
  timing: LeaseTiming,
): boolean {
  if (lease || seen.lease) return lease?.version === seen.lease?.version;
  return !isOutdated && !isForgotten(seen, now, timing);
}

/** Whether something that is not there was not looked at for too long, as by a process that was frozen. */
function isForgotten({ lease, checkedAt }: Seen, now: number, { retryMs }: LeaseTiming): boolean {
  return !lease && now - checkedAt > 2 * retryMs;
}

function afterWrite(
  { term, transitions }: LeaderState,
  { lease, sentAt }: Extract<LeaderNews, { got: 'written' }>,
  now: number,
  { holdMs, retryMs }: LeaseTiming,
  spread: number,
): LeaderState {
  // It counts from when it was sent: others may have seen it at any time since.
  const until = sentAt + holdMs;
  return {
    seen: { lease, since: now, checkedAt: now, isOurs: true, isFirst: false },
    term: now < until ? { number: term?.number ?? lease.transitions, until } : undefined,
    askAt: Math.max(now, sentAt + retryMs * spread),
    isOutdated: false,
    doubt: undefined,
    transitions: Math.max(transitions, lease.transitions),
  };
}
