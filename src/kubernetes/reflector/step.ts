import { isOlder } from '../unstructured.ts';
import { memoryOf } from './state.ts';
import type {
  Effect,
  Next,
  ReadFailure,
  ReflectorEvent,
  ReflectorState,
  Step,
  StepContext,
  WatchPosition,
} from './state.ts';

/*
 * What follows an event, by state:
 *
 *   event \ state  listing                    discovering       watching                        waiting, not-served, new
 *   due            -                          -                 -                               list, or the watch
 *   page           next page, or watch        -                 -                               -
 *   discovered     -                          list, or          -                               -
 *                                             not-served
 *   opened         -                          -                 read the watch                  -
 *   change         -                          -                 apply it; list if older         -
 *   bookmark       -                          -                 note it; list if older          -
 *   ended          -                          -                 watch; wait first after a       -
 *                                                               short one
 *   idle           -                          -                 watch; the second time list     -
 *   404            next version, or discover  wait              wait, list                      -
 *   410            list again                 wait              list                            -
 *   403            wait, list                 not-served if     wait, list                      -
 *                                             nothing is known
 *   other failure  wait, list                 wait, list        wait, watch; each fifth: list   -
 *   close          closed                     closed            closed                          closed
 *
 * An event where the table has `-` is a failure: wait, list. Waits are random with exponential backoff, after the time
 * that the server asks for. A list that could not be read, or not in time, is requested in pages half as large until one
 * was read completely. Only a watch that was open for 5 s resets the failures of watches, so no server can make a
 * reflector send requests in a tight loop.
 */

/** Decides what follows an event. It never throws, and something always follows until the reflector is closed. */
export function step(state: ReflectorState, event: ReflectorEvent, context: StepContext): Step {
  if (event.event === 'close' || state.is === 'closed') return closed(state);
  switch (state.is) {
    case 'new':
    case 'not-served':
      return event.event === 'due' ? listNow(state) : listLater(state, failureOf(event), context);
    case 'waiting':
      if (event.event !== 'due') return listLater(state, failureOf(event), context);
      return state.then === 'list' ? listNow(state) : watchNow(state, state.then, context);
    case 'listing':
      return whileListing(state, event, context);
    case 'discovering':
      return whileDiscovering(state, event, context);
    case 'watching':
      return whileWatching(state, event, context);
  }
}

type In<I extends ReflectorState['is']> = Extract<ReflectorState, { readonly is: I }>;

function whileListing(state: In<'listing'>, event: ReflectorEvent, context: StepContext): Step {
  const isFirst = state.token === '';
  if (event.event === 'failure' && event.reason === 'NotFound' && isFirst) {
    if (state.versionIndex + 1 < context.versions) return listNow(state, state.versionIndex + 1);
    if (state.known === 'not-served') return notServed(state, context);
    return { state: { ...memoryOf(state), is: 'discovering' }, effects: [], next: { do: 'discover' } };
  }
  if (event.event === 'failure' && event.reason === 'Expired' && state.listFailures === 0) {
    return listNow({ ...state, listFailures: 1 });
  }
  if (event.event !== 'page') return listLater(state, failureOf(event), context);
  const isInInitialList = state.known === 'nothing';
  const { versionIndex, halvings } = state;
  const resourceVersion = isFirst ? event.version : state.resourceVersion;
  const effects: readonly Effect[] = [
    ...(isFirst ? [{ do: 'begin-list', version: resourceVersion } as const] : []),
    { do: 'put-page', objects: event.objects, isInInitialList },
  ];
  const { token } = event;
  if (token !== '') {
    const isEndless = token === state.token || event.objects.length === 0;
    if (isEndless) return listLater(state, ENDLESS, context, effects);
    const next = { do: 'list', versionIndex, token, halvings } as const;
    return { state: { ...state, resourceVersion, token }, effects, next };
  }
  const isNew = state.known !== 'objects';
  const listed = { ...memoryOf(state), is: 'new', known: 'objects', listFailures: 0, halvings: 0 } as const;
  return watchNow(listed, { versionIndex, resourceVersion }, context, [
    ...effects,
    { do: 'end-list', version: resourceVersion, isInInitialList },
    ...(isNew ? [{ do: 'report-synced' } as const] : []),
  ]);
}

const ENDLESS: ReadFailure = { reason: 'Malformed', message: 'the list has no end' };

function whileDiscovering(state: In<'discovering'>, event: ReflectorEvent, context: StepContext): Step {
  const isForbidden = event.event === 'failure' && event.reason === 'Forbidden' && state.known === 'nothing';
  if (isForbidden || (event.event === 'discovered' && !event.isServed)) return notServed(state, context);
  return listLater(state, event.event === 'discovered' ? NOT_LISTED : failureOf(event), context);
}

const NOT_LISTED: ReadFailure = { reason: 'NotFound', message: 'the kind is served, but listing it is 404' };

function whileWatching(state: In<'watching'>, event: ReflectorEvent, context: StepContext): Step {
  switch (event.event) {
    case 'opened':
      return readWatch({ ...state, openSince: context.now }, []);
    case 'change': {
      const { change, object, version } = event;
      if (isOlder(version, state.resourceVersion)) return afterFailure(state, OLDER, context);
      return readWatch(advanced(state, version, context), [{ do: 'apply-change', change, object, version }]);
    }
    case 'bookmark': {
      const { version } = event;
      if (isOlder(version, state.resourceVersion)) return afterFailure(state, OLDER, context);
      return readWatch(advanced(state, version, context), [{ do: 'note-version', version }]);
    }
    case 'ended':
      if (isGood(state, context)) return watchNow({ ...state, watchFailures: 0 }, state, context);
      if (!state.hasNews) return afterFailure(state, ENDED, context);
      return waiting(state, positionOf(state), ENDED, context.timing.firstBackoffMs / 2);
    case 'idle':
      if (state.idleTimeouts > 0) return listNow({ ...state, idleTimeouts: 0 });
      return watchNow({ ...state, idleTimeouts: 1 }, state, context);
    case 'due':
    case 'page':
    case 'discovered':
    case 'failure':
    case 'close':
      return afterFailure(state, failureOf(event), context);
  }
}

/** As after a restore of etcd from a backup. */
const OLDER: ReadFailure = { reason: 'Expired', message: 'the server went back to an older resourceVersion' };
const ENDED: ReadFailure = { reason: 'Unreachable', message: 'the watch ended as soon as it began' };

function isGood({ openSince }: In<'watching'>, { now, timing }: StepContext): boolean {
  return openSince !== undefined && now - openSince >= timing.goodWatchMs;
}

function advanced(state: In<'watching'>, version: string, context: StepContext): In<'watching'> {
  const isNews = version !== '' && version !== state.resourceVersion;
  return {
    ...state,
    resourceVersion: version === '' ? state.resourceVersion : version,
    hasNews: state.hasNews || isNews,
    idleTimeouts: 0,
    watchFailures: isGood(state, context) ? 0 : state.watchFailures,
  };
}

/** A server may refuse watches alone: after this many failures in a row, a list reads what was missed. */
const WATCHES_BEFORE_LIST = 5;

function afterFailure(state: In<'watching'>, failure: RetryableFailure, context: StepContext): Step {
  const before = isGood(state, context) ? 0 : state.watchFailures;
  const failed = { ...state, watchFailures: before + 1 };
  if (failure.reason === 'Expired' && before === 0) return listNow(failed);
  const ms = backoffMs(failed.watchFailures, failure, context);
  const isRefused = ['Expired', 'Forbidden', 'Invalid', 'NotFound'].includes(failure.reason);
  const isMalformedAgain = failure.reason === 'Malformed' && before > 0;
  const isFifth = failed.watchFailures % WATCHES_BEFORE_LIST === 0;
  const then = isRefused || isMalformedAgain || isFifth ? 'list' : positionOf(state);
  return waiting(failed, then, failure, ms);
}

function positionOf({ versionIndex, resourceVersion }: WatchPosition): WatchPosition {
  return { versionIndex, resourceVersion };
}

type RetryableFailure = ReadFailure & { readonly retryAfterMs?: number; readonly tookMs?: number };

function failureOf(event: ReflectorEvent): RetryableFailure {
  if (event.event === 'failure') return event;
  return { reason: 'Malformed', message: `unexpected event "${event.event}"` };
}

/** Waits, then lists. */
function listLater(
  state: ReflectorState,
  failure: RetryableFailure,
  context: StepContext,
  effects: readonly Effect[] = [],
): Step {
  // The page may have been too large, or too slow for the timeout: objects can have a megabyte each.
  const { reason, tookMs = 0 } = failure;
  const isTooLarge = reason === 'Malformed' || tookMs >= SLOW_MS;
  const halvings = isTooLarge ? Math.min(state.halvings + 1, MAX_HALVINGS) : state.halvings;
  const failed = { ...state, listFailures: state.listFailures + 1, halvings };
  return waiting(failed, 'list', failure, backoffMs(failed.listFailures, failure, context), effects);
}

/** A list that fails after this time may have been slow because it was large. */
const SLOW_MS = 20_000;

/** 500 objects become 15, which an API server can return though each may have 1.5 MB. */
const MAX_HALVINGS = 5;

/** Random, so that clients that failed together do not retry together; Retry-After comes first. */
function backoffMs(failures: number, failure: RetryableFailure, { random, timing }: StepContext): number {
  const { firstBackoffMs, maxBackoffMs } = timing;
  const most = Math.min(firstBackoffMs * 2 ** (failures - 1), maxBackoffMs);
  const retryAfterMs = Math.min(failure.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  return retryAfterMs + Math.max(firstBackoffMs / 2, random * most);
}

/** With the backoff after it, at most a minute. */
const MAX_RETRY_AFTER_MS = 30_000;

function waiting(
  state: ReflectorState,
  then: 'list' | WatchPosition,
  { reason, message }: ReadFailure,
  ms: number,
  effects: readonly Effect[] = [],
): Step {
  const failure = { reason, message };
  return { state: { ...memoryOf(state), is: 'waiting', then, failure }, effects, next: { do: 'wait', ms } };
}

/** Removes all objects, also those of an incomplete list, and waits until the kind may be served. */
function notServed(state: ReflectorState, { random, timing }: StepContext): Step {
  const ms = timing.rediscoverMs * (0.75 + random / 2);
  const isNew = state.known === 'nothing';
  const memory = { ...memoryOf(state), known: 'not-served', listFailures: 0, watchFailures: 0 } as const;
  return {
    state: { ...memory, is: 'not-served' },
    effects: [{ do: 'remove-all' }, ...(isNew ? [{ do: 'report-synced' } as const] : [])],
    next: { do: 'wait', ms },
  };
}

/** Lists the kind in one of its versions. */
function listNow(state: ReflectorState, versionIndex = 0): Step {
  const listing = { is: 'listing', versionIndex, token: '', resourceVersion: '' } as const;
  const next: Next = { do: 'list', versionIndex, token: '', halvings: state.halvings };
  return { state: { ...memoryOf(state), ...listing }, effects: [], next };
}

function watchNow(
  state: ReflectorState,
  position: WatchPosition,
  { random, timing }: StepContext,
  effects: readonly Effect[] = [],
): Step {
  const [least, most] = timing.watchMs;
  const from = positionOf(position);
  const watching = { is: 'watching', ...from, openSince: undefined, hasNews: false } as const;
  const next: Next = { do: 'watch', ...from, forMs: least + random * (most - least) };
  return { state: { ...memoryOf(state), ...watching }, effects, next };
}

function readWatch(state: ReflectorState, effects: readonly Effect[]): Step {
  return { state, effects, next: { do: 'read-watch' } };
}

function closed(state: ReflectorState): Step {
  return { state: { ...memoryOf(state), is: 'closed' }, effects: [], next: { do: 'stop' } };
}
