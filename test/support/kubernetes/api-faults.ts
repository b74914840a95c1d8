import { named } from '../declared.ts';
import { meshEndpoints } from '../objects.ts';
import { eventually } from '../eventually.ts';
import type { Fault } from './api-answer.ts';
import { expectInSync, openApiScene } from './api-scene.ts';
import type { ApiScene } from './api-scene.ts';
import type { ApiRequest } from './api-server.ts';
import type { ApiWatch } from './api-watch.ts';
import { OTHER_AUTHORITY } from './wire-certificates.ts';

/** When a failure happens. */
export const MOMENTS = ['first list', 'page 3', 'watch idle', 'watch busy'] as const;

export type Moment = (typeof MOMENTS)[number];

/** The failures. */
export const FAILURES = [
  'reset',
  'early close',
  'silence',
  '5xx',
  '429 with Retry-After',
  '410',
  'garbage',
  'truncated JSON',
  'slow drip',
  'lost bookmarks',
  'rotated token',
  'rotated CA',
] as const;

export type Failure = (typeof FAILURES)[number];

/** The number of requests of a source, and the time until it was in sync again. */
export type Outcome = { readonly requests: number; readonly ms: number; readonly problem?: string };

const OBJECTS = 45;
const PAGE = 10;
/** The files of a pod change a moment after the server. */
const LAG_MS = 150;

/** The responses of a failure, where it has any. */
const RESPONSES: Readonly<Partial<Record<Failure, readonly Fault[]>>> = {
  reset: ['reset'],
  'early close': ['early close'],
  silence: ['silence'],
  '5xx': ['500', '503', '500'],
  '429 with Retry-After': ['429'],
  '410': ['410', '410'],
  garbage: ['garbage'],
  'truncated JSON': ['truncated JSON'],
  'slow drip': ['slow drip'],
};

/** The maximum number of requests: two full lists, and a few per second. */
export function budgetOf({ ms }: Outcome): number {
  return 20 + (ms / 1000) * 10;
}

/** Runs a source through a failure. */
export async function runFailure(failure: Failure, moment: Moment): Promise<Outcome> {
  const scene = await openApiScene();
  const { server, store, source } = scene;
  const began = performance.now();
  const outcome = () => ({ requests: server.requests.length, ms: Math.round(performance.now() - began) });
  try {
    for (let at = 0; at < OBJECTS; at++) put(scene, `default/web-${at}`);
    server.settings.maxPageSize = PAGE;
    const isFirst = moment === 'first list';
    if (isFirst || moment === 'page 3') failList(scene, failure, isFirst ? 1 : 3);
    source.start();
    if (moment === 'watch idle' || moment === 'watch busy') await failWatch(scene, failure, moment);
    else change(scene, 'meanwhile');
    await eventually(() => {
      if (!store.isSynced()) throw new Error('it is not synced');
      expectInSync(scene);
    });
    if (failure === 'lost bookmarks') await untilReplaced(scene);
    if (failure.startsWith('rotated')) await eventually(() => expectRotated(scene));
    change(scene, 'later');
    await eventually(() => expectInSync(scene));
    return outcome();
  } catch (error) {
    return { ...outcome(), problem: error instanceof Error ? error.message : String(error) };
  } finally {
    await scene.close();
  }
}

function expectRotated({ account }: ApiScene): void {
  if (!account.hasChanged()) throw new Error('the file was not written yet');
}

/** Waits until a silent watch was replaced; the new one gets 410. */
async function untilReplaced({ server }: ApiScene): Promise<void> {
  const watches = () => server.requests.filter(isWatch).length;
  const before = watches();
  server.state.skip(5);
  server.state.compact();
  await eventually(() => {
    if (watches() === before) throw new Error('a silent watch never times out');
  });
}

function put({ server }: ApiScene, name: string, spec: Readonly<Record<string, unknown>> = {}): void {
  server.state.put(named(meshEndpoints(spec), name));
}

/** Creates, updates and deletes an object. */
function change(scene: ApiScene, name: string): void {
  put(scene, `default/${name}`);
  put(scene, 'default/web-1', { tailnet: `${name}.ts.net` });
  const [first] = scene.server.state.list('MeshEndpoints');
  if (first)
    scene.server.state.remove({ kind: 'MeshEndpoints', namespace: 'default', name: first.metadata.name });
}

function failList(scene: ApiScene, failure: Failure, page: number): void {
  const { server } = scene;
  const isPage = (request: ApiRequest) => request.for === 'page' && request.page === page;
  if (failure === '410' && page > 1) {
    once(scene, isPage, () => server.state.compact());
    return;
  }
  for (const fault of RESPONSES[failure] ?? []) server.failNext(isPage, fault);
  if (RESPONSES[failure]) return;
  if (page === 1) {
    rotate(scene, failure);
    return;
  }
  once(
    scene,
    request => request.for === 'page' && request.page === page - 1,
    () => rotate(scene, failure),
  );
}

/** Acts once at a request, before its response. */
function once({ server }: ApiScene, when: (request: ApiRequest) => boolean, act: () => void): void {
  let isDone = false;
  const matches = (request: ApiRequest) => {
    if (isDone || !when(request)) return false;
    isDone = true;
    act();
    return false;
  };
  server.failNext(matches, 'reset');
}

function rotate({ server, account }: ApiScene, failure: Failure): void {
  if (failure === 'lost bookmarks') server.settings.bookmarkMs = 0;
  if (failure === 'rotated token') {
    server.settings.token = 'second';
    setTimeout(() => account.put('token', 'second'), LAG_MS);
  }
  if (failure === 'rotated CA') {
    // Open requests still get their responses.
    setTimeout(() => server.useCertificate(OTHER_AUTHORITY), 0);
    setTimeout(() => account.put('ca.crt', OTHER_AUTHORITY.ca), LAG_MS);
  }
}

async function failWatch(scene: ApiScene, failure: Failure, moment: Moment): Promise<void> {
  const { server, store } = scene;
  await store.whenSynced();
  await eventually(() => {
    if (server.watches.length === 0) throw new Error('nothing is watched');
  });
  if (moment === 'watch idle') {
    for (const watch of server.watches) injectInto(scene, failure, watch);
    change(scene, 'meanwhile');
    return;
  }
  server.beforeEvent(5, watch => injectInto(scene, failure, watch));
  for (let at = 0; at < 20; at++) put(scene, `default/web-${at}`, { tailnet: `busy-${at}.ts.net` });
  change(scene, 'meanwhile');
}

function injectInto(scene: ApiScene, failure: Failure, watch: ApiWatch): void {
  const { server } = scene;
  const [fault, ...more] = RESPONSES[failure] ?? [];
  if (failure === '410') server.state.compact();
  else
    for (const next of failure === '429 with Retry-After' ? ['429' as const] : more)
      server.failNext(isWatch, next);
  if (fault) {
    watch.inject(fault);
    return;
  }
  rotate(scene, failure);
  if (failure === 'rotated token') watch.end();
}

function isWatch(request: ApiRequest): boolean {
  return request.for === 'watch';
}
