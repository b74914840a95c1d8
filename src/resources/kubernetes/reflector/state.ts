import type { Arrival } from '../../store.ts';
import type { KubeErrorReason } from '../kube-error.ts';

/** Times by which an API server is followed. */
export type Patience = {
  /** How long a watch may be silent: a healthy server says something each minute. */
  readonly silenceMs: number;
  /** How long a server may take to begin a watch. */
  readonly openingMs: number;
  /** For how long a watch is asked for: somewhere between these. */
  readonly watchMs: readonly [number, number];
  /** A watch that lived so long was a good one, whatever ended it. */
  readonly goodWatchMs: number;
  /** The first of the waits after failures; each of the next is up to twice as long. */
  readonly firstBackoffMs: number;
  readonly longestBackoffMs: number;
  /** When to look again for a kind that is not served. */
  readonly absenceMs: number;
};

/** Times that spare the server and the network. */
export const PATIENCE: Patience = {
  silenceMs: 90_000,
  openingMs: 30_000,
  watchMs: [300_000, 600_000],
  goodWatchMs: 5_000,
  firstBackoffMs: 200,
  longestBackoffMs: 30_000,
  absenceMs: 30_000,
};

/** Why something did not work. */
export type Trouble = { readonly reason: KubeErrorReason; readonly message: string };

/** From where a watch goes on: which version of the kind, and after which version of its objects. */
export type Place = { readonly at: number; readonly from: string };

/** What outlives every state. */
type Memory = {
  /** Nothing until the kind has been read whole, or is known not to be served. */
  readonly known: 'nothing' | 'objects' | 'absence';
  /** In a row. */
  readonly listFailures: number;
  readonly watchFailures: number;
  readonly silences: number;
  /** How often the pages that are asked for were made half as large, because one could not be read. */
  readonly halvings: number;
};

/** What a reflector does at this moment. */
type Doing =
  | { readonly is: 'new' }
  /** `at` is the place among the versions in which the kind may be served; `version` is that of the first page. */
  | {
      readonly is: 'listing';
      readonly at: number;
      readonly token: string;
      readonly version: string;
      readonly pages: number;
    }
  /** It is to be found out whether the kind is served at all. */
  | { readonly is: 'asking' }
  | ({ readonly is: 'watching'; readonly openSince: number | undefined; readonly hasNews: boolean } & Place)
  | { readonly is: 'waiting'; readonly then: 'list' | Place; readonly trouble: Trouble }
  /** The kind is not served, and will be looked for again. */
  | { readonly is: 'absent' }
  | { readonly is: 'closed' };

/** How far a reflector is. */
export type ReflectorState = Memory & Doing;

/** What is kept of a state when it ends. */
export function memoryOf(state: ReflectorState): Memory {
  const { known, listFailures, watchFailures, silences, halvings } = state;
  return { known, listFailures, watchFailures, silences, halvings };
}

/** Where every reflector begins. */
export const NEW: ReflectorState = {
  is: 'new',
  known: 'nothing',
  listFailures: 0,
  watchFailures: 0,
  silences: 0,
  halvings: 0,
};

/** What a reflector hears: the answer to what it did last, or that it is over. */
export type Heard =
  /** It may begin, or has waited long enough. */
  | { readonly hear: 'go' }
  /** A page of a list; without a token it is the last. */
  | {
      readonly hear: 'page';
      readonly objects: readonly unknown[];
      readonly version: string;
      readonly token: string;
    }
  | { readonly hear: 'served'; readonly isServed: boolean }
  | { readonly hear: 'opened' }
  | {
      readonly hear: 'change';
      readonly change: 'put' | 'remove';
      readonly object: unknown;
      readonly version: string;
    }
  /** A bookmark: everything until this version has been told. */
  | { readonly hear: 'progress'; readonly version: string }
  /** The server ended the watch as it should. */
  | { readonly hear: 'end' }
  | { readonly hear: 'silence' }
  | ({ readonly hear: 'failure'; readonly retryAfterMs?: number; readonly tookMs?: number } & Trouble)
  | { readonly hear: 'close' };

/** What becomes of the objects. */
export type Effect =
  | { readonly do: 'begin-list'; readonly version: string }
  | { readonly do: 'take-page'; readonly objects: readonly unknown[]; readonly arrival: Arrival }
  | { readonly do: 'end-list'; readonly version: string; readonly arrival: Arrival }
  | {
      readonly do: 'take-change';
      readonly change: 'put' | 'remove';
      readonly object: unknown;
      readonly version: string;
    }
  | { readonly do: 'note-progress'; readonly version: string }
  | { readonly do: 'empty' }
  /** Everything that was there at the start has been read. */
  | { readonly do: 'say-read' };

/** What to do then, which is the only thing that leads on: a watch is given up by doing anything but reading on. */
export type Next =
  | {
      readonly do: 'list';
      readonly at: number;
      readonly token: string;
      readonly halvings: number;
    }
  | { readonly do: 'ask-served' }
  | ({ readonly do: 'watch'; readonly forMs: number } & Place)
  | { readonly do: 'read-on' }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'stop' };

/** What a reflector makes of what it heard. */
export type Step = {
  readonly state: ReflectorState;
  readonly effects: readonly Effect[];
  readonly next: Next;
};

/** What a step depends on, besides what is and what was heard. */
export type Given = {
  readonly now: number;
  /** Between 0 and 1, and new each time. */
  readonly roll: number;
  /** How many versions of the kind are read. */
  readonly versions: number;
  readonly patience: Patience;
};
