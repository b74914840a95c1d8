import type { Clock } from '../../../api/clock.ts';
import type { ResourceKind } from '../../../api/key.ts';
import { pageSizeOf, pathOfAll, SERVED } from '../served-kinds.ts';
import { KubeError } from '../kube-error.ts';
import { heardIn, isServed, pageOf } from './responses.ts';
import type { Heard, Next, Patience } from './state.ts';
import type { KubeTransport } from '../transport/transport.ts';

/** What is asked, and by what. */
export type RequestDeps = {
  readonly kind: ResourceKind;
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly patience: Patience;
};

/** A watch, until it is ended. */
export type OpenWatch = {
  readonly end: AbortController;
  /** Nothing until the server has begun it. */
  lines?: AsyncIterator<unknown>;
};

type Tell = (heard: Heard) => void;

/** What may be begun. */
type Task = Exclude<Next, { readonly do: 'stop' }>;

/** Begins what is next, and tells what comes of it; gives the function that ends it early, but for the watch. */
export function begin(task: Task, deps: RequestDeps, watch: OpenWatch | undefined, tell: Tell): () => void {
  switch (task.do) {
    case 'wait':
      return deps.clock.after(task.ms, () => tell({ hear: 'go' }));
    case 'list':
      return list(task, deps, tell);
    case 'ask-served':
      return askServed(deps, tell);
    case 'watch':
      return watch ? open(task, deps, watch, tell) : tellOfNone(tell);
    case 'read-on':
      return watch?.lines ? readOn(deps, watch.lines, tell) : tellOfNone(tell);
  }
}

type ListTask = Extract<Next, { readonly do: 'list' }>;

function list(
  { at, token, halvings }: ListTask,
  { kind, transport, clock }: RequestDeps,
  tell: Tell,
): () => void {
  const end = new AbortController();
  const version = versionOf(kind, at);
  const limit = Math.ceil(pageSizeOf(kind) / 2 ** halvings);
  const query = { limit: String(limit), ...(token === '' ? {} : { continue: token }) };
  const request = {
    verb: 'list',
    path: pathOfAll(SERVED[kind], version),
    query,
    signal: end.signal,
  } as const;
  const startedAt = clock.now();
  hear(
    () => transport.ask(request).then(answer => pageOf(kind, version, answer)),
    heard => tell(heard.hear === 'failure' ? { ...heard, tookMs: clock.now() - startedAt } : heard),
  );
  return () => end.abort();
}

function askServed({ kind, transport }: RequestDeps, tell: Tell): () => void {
  const end = new AbortController();
  const get = (path: string) => transport.ask({ verb: 'get', path, signal: end.signal });
  hear(() => isServed(SERVED[kind], get).then(answer => ({ hear: 'served', isServed: answer })), tell);
  return () => end.abort();
}

type WatchTask = Extract<Next, { readonly do: 'watch' }>;

function open({ at, from, forMs }: WatchTask, deps: RequestDeps, watch: OpenWatch, tell: Tell): () => void {
  const { kind, transport, clock, patience } = deps;
  const query = {
    watch: 'true',
    resourceVersion: from,
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(Math.max(1, Math.round(forMs / 1000))),
  };
  const path = pathOfAll(SERVED[kind], versionOf(kind, at));
  const begun = (lines: AsyncIterable<unknown>): Heard => {
    watch.lines = lines[Symbol.asyncIterator]();
    return { hear: 'opened' };
  };
  const { signal } = watch.end;
  hear(() => transport.follow({ verb: 'watch', path, query, signal }).then(begun), tell);
  return clock.after(patience.openingMs, () => tell(NOT_OPENED));
}

function readOn({ clock, patience }: RequestDeps, lines: AsyncIterator<unknown>, tell: Tell): () => void {
  hear(
    () => lines.next().then(({ done, value }) => (done === true ? { hear: 'end' } : heardIn(value))),
    tell,
  );
  return clock.after(patience.silenceMs, () => tell({ hear: 'silence' }));
}

function tellOfNone(tell: Tell): () => void {
  tell(NOT_OPENED);
  return () => undefined;
}

const NOT_OPENED: Heard = { hear: 'failure', reason: 'Unreachable', message: 'the watch did not begin' };

/** Tells what came, or why nothing did. */
function hear(ask: () => Promise<Heard>, tell: Tell): void {
  const asked = new Promise<Heard>(resolve => resolve(ask()));
  void asked.then(tell, (error: unknown) => tell(failureOf(error)));
}

function failureOf(error: unknown): Heard {
  if (!(error instanceof KubeError)) return { hear: 'failure', reason: 'Failed', message: String(error) };
  const { reason, message, retryAfterMs } = error;
  return { hear: 'failure', reason, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

function versionOf(kind: ResourceKind, at: number): string {
  return SERVED[kind].versions[at] ?? '';
}
