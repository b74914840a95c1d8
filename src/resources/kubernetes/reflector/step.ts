import { memoryOf } from './state.ts';
import type { Effect, Given, Heard, Next, Place, ReflectorState, Step, Trouble } from './state.ts';
import { isOlder } from '../unstructured.ts';

/*
 * How the objects of a kind are followed, by what is done and what is heard of it:
 *
 *   heard \ done   listing                    asking            watching                        waiting, absent, new
 *   go             -                          -                 -                               what it waited for
 *   page           the next, or watch         -                 -                               -
 *   served         -                          list, or absent   -                               -
 *   opened         -                          -                 read on                         -
 *   change         -                          -                 take it, read on                -
 *   progress       -                          -                 read on; list if set back       -
 *   end            -                          -                 watch; wait before if it came   -
 *                                                               to nothing
 *   silence        -                          -                 watch; the second time list     -
 *   404            the next version, or ask   wait              wait, list                      -
 *   410            list again                 wait              list                            -
 *   403            wait, list                 absent, if        wait, list                      -
 *                                             nothing is known
 *   other failure  wait, list                 wait, list        wait, watch; each fifth: list   -
 *   close          closed                     closed            closed                          closed
 *
 * Where nothing is said, what was heard makes no sense there: that is a failure, and it waits and lists. A wait after
 * failures is random, up to 200 ms, and up to twice as long each time, but for what the server says. A list that could not
 * be read, or not in time, is asked for in pages half as large, until it was read to its end. Failures of watches are only forgotten when a
 * watch was good: it lived for 5 s. So no server can make us ask without a pause.
 */

/** What to make of what is heard. It never throws, and there always is something that leads on, but when closed. */
export function step(state: ReflectorState, heard: Heard, given: Given): Step {
  if (heard.hear === 'close' || state.is === 'closed') return closed(state);
  switch (state.is) {
    case 'new':
    case 'absent':
      return heard.hear === 'go' ? listNow(state) : confused(state, heard, given);
    case 'waiting':
      if (heard.hear !== 'go') return confused(state, heard, given);
      return state.then === 'list' ? listNow(state) : watchNow(state, state.then, given);
    case 'listing':
      return whileListing(state, heard, given);
    case 'asking':
      return whileAsking(state, heard, given);
    case 'watching':
      return whileWatching(state, heard, given);
  }
}

type Doing<I extends ReflectorState['is']> = Extract<ReflectorState, { readonly is: I }>;

/** A server that gives pages without an end gives no list. */
const MOST_PAGES = 100_000;

function whileListing(state: Doing<'listing'>, heard: Heard, given: Given): Step {
  const isFirst = state.token === '';
  if (heard.hear === 'failure' && heard.reason === 'NotFound' && isFirst) {
    if (state.at + 1 < given.versions) return listNow(state, [], state.at + 1);
    if (state.known === 'absence') return absent(state, given);
    return { state: { ...memoryOf(state), is: 'asking' }, effects: [], next: { do: 'ask-served' } };
  }
  if (heard.hear === 'failure' && heard.reason === 'Expired' && state.listFailures === 0) {
    return listNow({ ...state, listFailures: 1 });
  }
  if (heard.hear !== 'page') return listLater(state, troubleOf(heard), given);
  const arrival = state.known === 'nothing' ? 'first' : 'live';
  const version = isFirst ? heard.version : state.version;
  const effects: readonly Effect[] = [
    ...(isFirst ? [{ do: 'begin-list', version } as const] : []),
    { do: 'take-page', objects: heard.objects, arrival },
  ];
  if (heard.token !== '') {
    const isEndless = heard.token === state.token || heard.objects.length === 0 || state.pages >= MOST_PAGES;
    if (isEndless) return listLater(state, ENDLESS, given, effects);
    const { at, halvings } = state;
    const next = { do: 'list', at, token: heard.token, halvings } as const;
    return { state: { ...state, version, token: heard.token, pages: state.pages + 1 }, effects, next };
  }
  const isNews = state.known !== 'objects';
  const whole = { ...memoryOf(state), is: 'new', known: 'objects', listFailures: 0, halvings: 0 } as const;
  const last = [{ do: 'end-list', version, arrival }, ...(isNews ? [{ do: 'say-read' }] : [])] as Effect[];
  return watchNow(whole, { at: state.at, from: version }, given, [...effects, ...last]);
}

const ENDLESS: Trouble = { reason: 'Garbled', message: 'the list has no end' };

function whileAsking(state: Doing<'asking'>, heard: Heard, given: Given): Step {
  const isRefused = heard.hear === 'failure' && heard.reason === 'Forbidden' && state.known === 'nothing';
  if (isRefused || (heard.hear === 'served' && !heard.isServed)) {
    return absent(state, given);
  }
  return listLater(state, heard.hear === 'served' ? HIDDEN : troubleOf(heard), given);
}

const HIDDEN: Trouble = { reason: 'NotFound', message: 'the kind is served, and its objects are not found' };

function whileWatching(state: Doing<'watching'>, heard: Heard, given: Given): Step {
  switch (heard.hear) {
    case 'opened':
      return readOn({ ...state, openSince: given.now }, []);
    case 'change': {
      const { change, object, version } = heard;
      if (isOlder(version, state.from)) return afterFailure(state, SET_BACK, given);
      return readOn(heardSomething(state, version, given), [{ do: 'take-change', change, object, version }]);
    }
    case 'progress':
      if (isOlder(heard.version, state.from)) return afterFailure(state, SET_BACK, given);
      return readOn(heardSomething(state, heard.version, given), [
        { do: 'note-progress', version: heard.version },
      ]);
    case 'end':
      if (isGood(state, given)) return watchNow({ ...state, watchFailures: 0 }, state, given);
      return state.hasNews ? watchSoon(state, ENDED, given) : afterFailure(state, ENDED, given);
    case 'silence':
      if (state.silences > 0) return listNow({ ...state, silences: 0 });
      return watchNow({ ...state, silences: 1 }, state, given);
    case 'go':
    case 'page':
    case 'served':
    case 'failure':
    case 'close':
      return afterFailure(state, troubleOf(heard), given);
  }
}

const SET_BACK: Troubled = {
  reason: 'Expired',
  message: 'the server was set back',
};
const ENDED: Trouble = { reason: 'Unreachable', message: 'the watch ended as soon as it began' };

/** Whether a watch has lived long enough to forget what was before it. */
function isGood(state: Doing<'watching'>, { now, patience }: Given): boolean {
  return state.openSince !== undefined && now - state.openSince >= patience.goodWatchMs;
}

function heardSomething(state: Doing<'watching'>, version: string, given: Given): Doing<'watching'> {
  const isNews = version !== '' && version !== state.from;
  return {
    ...state,
    from: version === '' ? state.from : version,
    hasNews: state.hasNews || isNews,
    silences: 0,
    watchFailures: isGood(state, given) ? 0 : state.watchFailures,
  };
}

/** After so many failures in a row, what was missed is read by a list: a server may only refuse to be watched. */
const WATCHES_BEFORE_LIST = 5;

function afterFailure(state: Doing<'watching'>, trouble: Troubled, given: Given): Step {
  const before = isGood(state, given) ? 0 : state.watchFailures;
  const failed = { ...state, watchFailures: before + 1 };
  if (trouble.reason === 'Expired' && before === 0) return listNow(failed);
  const ms = waitMs(failed.watchFailures, trouble, given);
  const isRefused = ['Expired', 'Forbidden', 'Invalid', 'NotFound'].includes(trouble.reason);
  const isGarbledAgain = trouble.reason === 'Garbled' && before > 0;
  const isLong = failed.watchFailures % WATCHES_BEFORE_LIST === 0;
  const then = isRefused || isGarbledAgain || isLong ? 'list' : { at: state.at, from: state.from };
  return waiting(failed, then, trouble, ms);
}

function troubleOf(heard: Heard): Troubled {
  if (heard.hear === 'failure') return heard;
  return { reason: 'Garbled', message: `"${heard.hear}" makes no sense here` };
}

function confused(state: ReflectorState, heard: Heard, given: Given): Step {
  return listLater(state, troubleOf(heard), given);
}

/** A trouble, when to ask again as the server wishes, and how long it took. */
type Troubled = Trouble & { readonly retryAfterMs?: number; readonly tookMs?: number };

/** Lists when it has waited. */
function listLater(
  state: ReflectorState,
  trouble: Troubled,
  given: Given,
  effects: readonly Effect[] = [],
): Step {
  // A page that could not be read was perhaps too large, or too slow to come: objects may be of a megabyte each.
  const { reason, tookMs = 0 } = trouble;
  const isTooLarge = reason === 'Garbled' || tookMs >= SLOW_MS;
  const halvings = isTooLarge ? Math.min(state.halvings + 1, MOST_HALVINGS) : state.halvings;
  const failed = { ...state, listFailures: state.listFailures + 1, halvings };
  return waiting(failed, 'list', trouble, waitMs(failed.listFailures, trouble, given), effects);
}

/** What fails after so long was perhaps on its way; where it was not, that costs one list in small pages. */
const SLOW_MS = 20_000;

/** No page need be smaller for an API server that keeps objects of up to 1.5 MB: 500 become 15. */
const MOST_HALVINGS = 5;

/** Random, so that those who failed together do not come again together; what the server wishes is waited for first. */
function waitMs(failures: number, { retryAfterMs = 0 }: Troubled, { roll, patience }: Given): number {
  const { firstBackoffMs, longestBackoffMs } = patience;
  const most = Math.min(firstBackoffMs * 2 ** (failures - 1), longestBackoffMs);
  return Math.min(retryAfterMs, LONGEST_WISH_MS) + Math.max(firstBackoffMs / 2, roll * most);
}

const LONGEST_WISH_MS = 60_000;

/** Waits, and reports why. */
function waiting(
  state: ReflectorState,
  then: 'list' | Place,
  { reason, message }: Trouble,
  ms: number,
  effects: readonly Effect[] = [],
): Step {
  const trouble = { reason, message };
  return {
    state: { ...memoryOf(state), is: 'waiting', then, trouble },
    effects,
    next: { do: 'wait', ms },
  };
}

/** Waits until the kind may be served. There may be objects of it though none was read whole: of a list that broke off. */
function absent(state: ReflectorState, { roll, patience }: Given): Step {
  const ms = patience.absenceMs * (0.75 + roll / 2);
  const effects: readonly Effect[] = [
    { do: 'empty' },
    ...(state.known === 'nothing' ? [{ do: 'say-read' } as const] : []),
  ];
  const memory = { ...memoryOf(state), known: 'absence', listFailures: 0, watchFailures: 0 } as const;
  return { state: { ...memory, is: 'absent' }, effects, next: { do: 'wait', ms } };
}

/** Begins a list, in one of the versions of the kind. */
function listNow(state: ReflectorState, effects: readonly Effect[] = [], at = 0): Step {
  const listing = { is: 'listing', at, token: '', version: '', pages: 1 } as const;
  const { halvings } = state;
  const next: Next = { do: 'list', at, token: '', halvings };
  return { state: { ...memoryOf(state), ...listing }, effects, next };
}

/** Begins a watch. */
function watchNow(
  state: ReflectorState,
  { at, from }: Place,
  { roll, patience }: Given,
  effects: readonly Effect[] = [],
): Step {
  const [least, most] = patience.watchMs;
  const next: Next = { do: 'watch', at, from, forMs: least + roll * (most - least) };
  const watching = { is: 'watching', at, from, openSince: undefined, hasNews: false } as const;
  return { state: { ...memoryOf(state), ...watching }, effects, next };
}

/** Watches on, after a pause: the watch before was short though nothing was wrong with it. */
function watchSoon(state: ReflectorState & Place, trouble: Trouble, { patience }: Given): Step {
  return waiting(state, { at: state.at, from: state.from }, trouble, patience.firstBackoffMs / 2);
}

/** Goes on with the watch. */
function readOn(state: ReflectorState, effects: readonly Effect[]): Step {
  return { state, effects, next: { do: 'read-on' } };
}

/** Does nothing any more. */
function closed(state: ReflectorState): Step {
  return { state: { ...memoryOf(state), is: 'closed' }, effects: [], next: { do: 'stop' } };
}
