import type { Clock } from '../../api/clock.ts';
import { pageSizeOf, pathOfAll } from '../served-kinds.ts';
import type { Collection } from '../served-kinds.ts';
import { KubeError } from '../transport/transport.ts';
import type { KubeTransport } from '../transport/transport.ts';
import { isServed, pageOf, watchEventIn } from './responses.ts';
import type { Next, ReflectorEvent, Timing } from './state.ts';

export type RequestDeps = {
  readonly collection: Collection;
  readonly transport: KubeTransport;
  readonly clock: Clock;
  readonly timing: Timing;
};

export type OpenWatch = {
  readonly abort: AbortController;
  /** Undefined until the server has opened the watch. */
  lines?: AsyncIterator<unknown>;
};

type Done = (event: ReflectorEvent) => void;
type Action<D extends Next['do']> = Extract<Next, { readonly do: D }>;

/** Performs an action and calls `done` with its outcome; returns the function that cancels it. A watch stays open. */
export function perform(
  action: Exclude<Next, Action<'stop'>>,
  deps: RequestDeps,
  watch: OpenWatch | undefined,
  done: Done,
): () => void {
  switch (action.do) {
    case 'wait':
      return deps.clock.after(action.ms, () => done({ event: 'due' }));
    case 'list':
      return list(action, deps, done);
    case 'discover':
      return discover(deps, done);
    case 'watch':
      return watch ? openWatch(action, deps, watch, done) : notOpened(done);
    case 'read-watch':
      return watch?.lines ? readLine(deps, watch.lines, done) : notOpened(done);
  }
}

function list({ versionIndex, token, halvings }: Action<'list'>, deps: RequestDeps, done: Done): () => void {
  const { collection, transport, clock } = deps;
  const abort = new AbortController();
  const version = versionOf(collection, versionIndex);
  const path = pathOfCollection(collection, version);
  const limit = Math.ceil(pageSizeOf(collection.served) / 2 ** halvings);
  const query = {
    ...collection.selection,
    limit: String(limit),
    ...(token === '' ? {} : { continue: token }),
  };
  const startedAt = clock.now();
  settle(
    async () =>
      pageOf(collection, version, await transport.send({ verb: 'list', path, query, signal: abort.signal })),
    event => done(event.event === 'failure' ? { ...event, tookMs: clock.now() - startedAt } : event),
  );
  return () => abort.abort();
}

function discover({ collection, transport }: RequestDeps, done: Done): () => void {
  const abort = new AbortController();
  const get = (path: string) => transport.send({ verb: 'get', path, signal: abort.signal });
  settle(async () => ({ event: 'discovered', isServed: await isServed(collection.served, get) }), done);
  return () => abort.abort();
}

function openWatch(action: Action<'watch'>, deps: RequestDeps, watch: OpenWatch, done: Done): () => void {
  const { collection, transport, clock, timing } = deps;
  const path = pathOfCollection(collection, versionOf(collection, action.versionIndex));
  const query = {
    ...collection.selection,
    watch: 'true',
    resourceVersion: action.resourceVersion,
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(Math.max(1, Math.round(action.forMs / 1000))),
  };
  const { signal } = watch.abort;
  settle(async () => {
    const lines = await transport.stream({ verb: 'watch', path, query, signal });
    watch.lines = lines[Symbol.asyncIterator]();
    return { event: 'opened' };
  }, done);
  return clock.after(timing.openTimeoutMs, () => done(NOT_OPENED));
}

function readLine({ clock, timing }: RequestDeps, lines: AsyncIterator<unknown>, done: Done): () => void {
  settle(async () => {
    const line = await lines.next();
    return line.done === true ? { event: 'ended' } : watchEventIn(line.value);
  }, done);
  return clock.after(timing.idleTimeoutMs, () => done({ event: 'idle' }));
}

function notOpened(done: Done): () => void {
  done(NOT_OPENED);
  return () => undefined;
}

const NOT_OPENED: ReflectorEvent = {
  event: 'failure',
  reason: 'Unreachable',
  message: 'the server did not open the watch',
};

function settle(act: () => Promise<ReflectorEvent>, done: Done): void {
  void act().then(done, (error: unknown) => done(failureOf(error)));
}

function failureOf(error: unknown): ReflectorEvent {
  if (!(error instanceof KubeError)) return { event: 'failure', reason: 'Failed', message: String(error) };
  const { reason, message, retryAfterMs } = error;
  return { event: 'failure', reason, message, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

function pathOfCollection({ served, namespace }: Collection, version: string): string {
  return pathOfAll(served, version, namespace);
}

function versionOf({ served }: Collection, index: number): string {
  return served.versions[index] ?? '';
}
