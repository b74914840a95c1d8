import type { KubeErrorReason } from '../transport/transport.ts';

/** The timeouts and backoffs of a reflector. */
export type Timing = {
  /** A watch without a line for this time is closed: a healthy API server sends a bookmark each minute. */
  readonly idleTimeoutMs: number;
  /** How long a server may take to open a watch. */
  readonly openTimeoutMs: number;
  /** Bounds of the timeout that is requested for each watch. */
  readonly watchMs: readonly [number, number];
  /** A watch that was open for this time resets the failures before it. */
  readonly goodWatchMs: number;
  readonly firstBackoffMs: number;
  readonly maxBackoffMs: number;
  /** How often discovery is repeated for a kind that is not served. */
  readonly rediscoverMs: number;
};

export const DEFAULT_TIMING: Timing = {
  idleTimeoutMs: 90_000,
  openTimeoutMs: 30_000,
  watchMs: [300_000, 600_000],
  goodWatchMs: 5_000,
  firstBackoffMs: 200,
  maxBackoffMs: 30_000,
  rediscoverMs: 30_000,
};

/** Why a list or a watch failed. */
export type ReadFailure = { readonly reason: KubeErrorReason; readonly message: string };

/** Where a watch starts: in which version of the kind, by its place in the list of versions, and after which resourceVersion. */
export type WatchPosition = { readonly versionIndex: number; readonly resourceVersion: string };

/** What every state has. */
type Memory = {
  /** Whether the kind has been listed completely, or is known not to be served. */
  readonly known: 'nothing' | 'objects' | 'not-served';
  /** Consecutive failures. */
  readonly listFailures: number;
  readonly watchFailures: number;
  readonly idleTimeouts: number;
  /** How often the page size was halved because a page could not be read. */
  readonly halvings: number;
};

type Activity =
  | { readonly is: 'new' }
  /** `token` continues the list; `resourceVersion` is that of the first page. */
  | ({ readonly is: 'listing'; readonly token: string } & WatchPosition)
  /** Reads from the server's discovery documents whether the kind is served. */
  | { readonly is: 'discovering' }
  | ({
      readonly is: 'watching';
      readonly openSince: number | undefined;
      readonly hasNews: boolean;
    } & WatchPosition)
  | { readonly is: 'waiting'; readonly then: 'list' | WatchPosition; readonly failure: ReadFailure }
  | { readonly is: 'not-served' }
  | { readonly is: 'closed' };

export type ReflectorState = Memory & Activity;

/** The fields that carry over to the next state. */
export function memoryOf(state: ReflectorState): Memory {
  const { known, listFailures, watchFailures, idleTimeouts, halvings } = state;
  return { known, listFailures, watchFailures, idleTimeouts, halvings };
}

export const NEW: ReflectorState = {
  is: 'new',
  known: 'nothing',
  listFailures: 0,
  watchFailures: 0,
  idleTimeouts: 0,
  halvings: 0,
};

/** An object was added or modified (`put`), or deleted. */
type ObjectChange = {
  readonly change: 'put' | 'remove';
  readonly object: unknown;
  readonly version: string;
};

/** The outcome of the last action, or that the reflector is closed. */
export type ReflectorEvent =
  /** The reflector was started, or a wait is over. */
  | { readonly event: 'due' }
  /** A page of a list; the last one has no token. */
  | {
      readonly event: 'page';
      readonly objects: readonly unknown[];
      readonly version: string;
      readonly token: string;
    }
  | { readonly event: 'discovered'; readonly isServed: boolean }
  | { readonly event: 'opened' }
  | ({ readonly event: 'change' } & ObjectChange)
  /** All changes up to this version have been sent. */
  | { readonly event: 'bookmark'; readonly version: string }
  /** The server closed the watch regularly. */
  | { readonly event: 'ended' }
  | { readonly event: 'idle' }
  | ({ readonly event: 'failure'; readonly retryAfterMs?: number; readonly tookMs?: number } & ReadFailure)
  | { readonly event: 'close' };

/** What to do with the store. */
export type Effect =
  | { readonly do: 'begin-list'; readonly version: string }
  | { readonly do: 'put-page'; readonly objects: readonly unknown[]; readonly isInInitialList: boolean }
  | { readonly do: 'end-list'; readonly version: string; readonly isInInitialList: boolean }
  | ({ readonly do: 'apply-change' } & ObjectChange)
  | { readonly do: 'note-version'; readonly version: string }
  | { readonly do: 'remove-all' }
  /** The kind has been read completely for the first time. */
  | { readonly do: 'report-synced' };

/** The one action that follows, and leads to the next event; any but `read-watch` closes an open watch. */
export type Next =
  | {
      readonly do: 'list';
      readonly versionIndex: number;
      readonly token: string;
      readonly halvings: number;
    }
  | { readonly do: 'discover' }
  | ({ readonly do: 'watch'; readonly forMs: number } & WatchPosition)
  | { readonly do: 'read-watch' }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'stop' };

export type Step = {
  readonly state: ReflectorState;
  readonly effects: readonly Effect[];
  readonly next: Next;
};

/** What a step depends on beside the state and the event. */
export type StepContext = {
  readonly now: number;
  /** At least 0, less than 1, and new for each step. */
  readonly random: number;
  /** How many versions of the kind can be read. */
  readonly versions: number;
  readonly timing: Timing;
};
