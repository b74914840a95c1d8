import { memoryOf } from './reflector-state.ts';
import type { Effect, Given, Next, Place, ReflectorState, Step, Trouble } from './reflector-state.ts';

/** A trouble, when to ask again as the server wishes, and how long it took. */
export type Troubled = Trouble & { readonly retryAfterMs?: number; readonly tookMs?: number };

/** Lists when it has waited. */
export function listLater(
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
export function waitMs(failures: number, { retryAfterMs = 0 }: Troubled, { roll, patience }: Given): number {
  const { firstBackoffMs, longestBackoffMs } = patience;
  const most = Math.min(firstBackoffMs * 2 ** (failures - 1), longestBackoffMs);
  return Math.min(retryAfterMs, LONGEST_WISH_MS) + Math.max(firstBackoffMs / 2, roll * most);
}

const LONGEST_WISH_MS = 60_000;

/** Waits, and tells why. */
export function waiting(
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
export function absent(state: ReflectorState, { roll, patience }: Given): Step {
  const ms = patience.absenceMs * (0.75 + roll / 2);
  const effects: readonly Effect[] = [
    { do: 'empty' },
    ...(state.known === 'nothing' ? [{ do: 'say-read' } as const] : []),
  ];
  const memory = { ...memoryOf(state), known: 'absence', listFailures: 0, watchFailures: 0 } as const;
  return { state: { ...memory, is: 'absent' }, effects, next: { do: 'wait', ms } };
}

/** Begins a list, in one of the versions of the kind. */
export function listNow(state: ReflectorState, effects: readonly Effect[] = [], at = 0): Step {
  const listing = { is: 'listing', at, token: '', version: '', pages: 1 } as const;
  const { halvings } = state;
  const next: Next = { do: 'list', at, token: '', halvings };
  return { state: { ...memoryOf(state), ...listing }, effects, next };
}

/** Begins a watch. */
export function watchNow(
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
export function watchSoon(state: ReflectorState & Place, trouble: Trouble, { patience }: Given): Step {
  return waiting(state, { at: state.at, from: state.from }, trouble, patience.firstBackoffMs / 2);
}

/** Goes on with the watch. */
export function readOn(state: ReflectorState, effects: readonly Effect[]): Step {
  return { state, effects, next: { do: 'read-on' } };
}

/** Does nothing any more. */
export function closed(state: ReflectorState): Step {
  return { state: { ...memoryOf(state), is: 'closed' }, effects: [], next: { do: 'stop' } };
}
