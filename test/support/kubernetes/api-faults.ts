import { named } from '../declared.ts';
import { meshEndpoints } from '../objects.ts';
import { eventually } from '../eventually.ts';
import type { Fault } from './api-answer.ts';
import { expectTruth, openApiScene } from './api-scene.ts';
import type { ApiScene } from './api-scene.ts';
import type { Asked } from './api-server.ts';
import type { ApiWatch } from './api-watch.ts';
import { OTHER_AUTHORITY } from './wire-certificates.ts';

/** When something goes wrong. */
export const MOMENTS = ['first list', 'page 3', 'watch idle', 'watch busy'] as const;

/** One of these. */
export type Moment = (typeof MOMENTS)[number];

/** What goes wrong. */
export const TROUBLES = [
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

/** One of these. */
export type Trouble = (typeof TROUBLES)[number];

/** What became of a source that met a trouble: how much it asked, and how long it took until it knew all again. */
export type Outcome = { readonly requests: number; readonly ms: number; readonly problem?: string };

const OBJECTS = 45;
const PAGE = 10;
/** A file that a pod reads is written a moment after the server has changed its mind. */
const LAG_MS = 150;

/** The answers that a trouble consists of, where it does. */
const ANSWERS: Readonly<Partial<Record<Trouble, readonly Fault[]>>> = {
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

/** So much may be asked: what is needed to read all of it twice, and a few requests for each second. */
export function budgetOf({ ms }: Outcome): number {
  return 20 + (ms / 1000) * 10;
}

/** Lets a source meet a trouble, and tells how it fared. */
export async function meet(trouble: Trouble, moment: Moment): Promise<Outcome> {
  const scene = await openApiScene();
  const { server, store, source } = scene;
  const began = performance.now();
  const outcome = () => ({ requests: server.requests.length, ms: Math.round(performance.now() - began) });
  try {
    for (let at = 0; at < OBJECTS; at++) put(scene, `default/web-${at}`);
    server.settings.mostPerPage = PAGE;
    const isFirst = moment === 'first list';
    if (isFirst || moment === 'page 3') spoilList(scene, trouble, isFirst ? 1 : 3);
    source.start();
    if (moment === 'watch idle' || moment === 'watch busy') await spoilWatch(scene, trouble, moment);
    else change(scene, 'meanwhile');
    await eventually(() => {
      if (!store.isSynced()) throw new Error('it is not synced');
      expectTruth(scene);
    });
    if (trouble === 'lost bookmarks') await outlived(scene);
    if (trouble.startsWith('rotated')) await eventually(() => expectRotated(scene));
    change(scene, 'later');
    await eventually(() => expectTruth(scene));
    return outcome();
  } catch (error) {
    return { ...outcome(), problem: error instanceof Error ? error.message : String(error) };
  } finally {
    await scene.close();
  }
}

/** A rotation is over when the pod has its new file. */
function expectRotated({ account }: ApiScene): void {
  if (!account.hasNew()) throw new Error('the file was not written yet');
}

/** Waits until a watch that heard nothing was given up, and lets the next one begin where nobody remembers. */
async function outlived({ server }: ApiScene): Promise<void> {
  const watches = () => server.requests.filter(isWatch).length;
  const before = watches();
  server.truth.skip(5);
  server.truth.compact();
  await eventually(() => {
    if (watches() === before) throw new Error('a silent watch is trusted for ever');
  });
}

function put({ server }: ApiScene, name: string, spec: Readonly<Record<string, unknown>> = {}): void {
  server.truth.put(named(meshEndpoints(spec), name));
}

/** One object comes, one changes and one goes. */
function change(scene: ApiScene, name: string): void {
  put(scene, `default/${name}`);
  put(scene, 'default/web-1', { tailnet: `${name}.ts.net` });
  const [first] = scene.server.truth.list('MeshEndpoints');
  if (first)
    scene.server.truth.remove({ kind: 'MeshEndpoints', namespace: 'default', name: first.metadata.name });
}

function spoilList(scene: ApiScene, trouble: Trouble, page: number): void {
  const { server } = scene;
  const isPage = (asked: Asked) => asked.for === 'page' && asked.page === page;
  if (trouble === '410' && page > 1) {
    once(scene, isPage, () => server.truth.compact());
    return;
  }
  for (const fault of ANSWERS[trouble] ?? []) server.spoil(isPage, fault);
  if (ANSWERS[trouble]) return;
  if (page === 1) {
    rotate(scene, trouble);
    return;
  }
  once(
    scene,
    asked => asked.for === 'page' && asked.page === page - 1,
    () => rotate(scene, trouble),
  );
}

/** Does something when a request comes, before it is answered. */
function once({ server }: ApiScene, when: (asked: Asked) => boolean, act: () => void): void {
  let isDone = false;
  const look = (asked: Asked) => {
    if (isDone || !when(asked)) return false;
    isDone = true;
    act();
    return false;
  };
  server.spoil(look, 'reset');
}

function rotate({ server, account }: ApiScene, trouble: Trouble): void {
  if (trouble === 'lost bookmarks') server.settings.bookmarkMs = 0;
  if (trouble === 'rotated token') {
    server.settings.token = 'second';
    setTimeout(() => account.put('token', 'second'), LAG_MS);
  }
  if (trouble === 'rotated CA') {
    // What was asked before is still answered.
    setTimeout(() => server.certify(OTHER_AUTHORITY), 0);
    setTimeout(() => account.put('ca.crt', OTHER_AUTHORITY.ca), LAG_MS);
  }
}

async function spoilWatch(scene: ApiScene, trouble: Trouble, moment: Moment): Promise<void> {
  const { server, store } = scene;
  await store.whenSynced();
  await eventually(() => {
    if (server.watches.length === 0) throw new Error('nothing is watched');
  });
  if (moment === 'watch idle') {
    for (const watch of server.watches) strike(scene, trouble, watch);
    change(scene, 'meanwhile');
    return;
  }
  server.onEvent(5, watch => strike(scene, trouble, watch));
  for (let at = 0; at < 20; at++) put(scene, `default/web-${at}`, { tailnet: `busy-${at}.ts.net` });
  change(scene, 'meanwhile');
}

function strike(scene: ApiScene, trouble: Trouble, watch: ApiWatch): void {
  const { server } = scene;
  const [fault, ...more] = ANSWERS[trouble] ?? [];
  if (trouble === '410') server.truth.compact();
  else
    for (const next of trouble === '429 with Retry-After' ? ['429' as const] : more)
      server.spoil(isWatch, next);
  if (fault) {
    watch.suffer(fault);
    return;
  }
  rotate(scene, trouble);
  if (trouble === 'rotated token') watch.end();
}

function isWatch(asked: Asked): boolean {
  return asked.for === 'watch';
}
