import { afterEach, describe, expect, it } from 'vitest';
import type { Ref, ResourceKind } from '../../src/api/key.ts';
import { eventually } from '../support/eventually.ts';
import { named, route } from '../support/declared.ts';
import {
  requestCounts,
  untilStates,
  reflectorStates,
  untilWatching,
} from '../support/kubernetes/api-requests.ts';
import { CALM, expectInSync, openApiScene } from '../support/kubernetes/api-scene.ts';
import type { ApiScene, ApiSceneOptions } from '../support/kubernetes/api-scene.ts';
import { meshEndpoints, meshTailnet } from '../support/objects.ts';
import { parseExposition, valueOf } from '../support/telemetry/exposition.ts';

const opened: ApiScene[] = [];
afterEach(async () => {
  for (const scene of opened.splice(0)) await scene.close();
});

async function open(options: ApiSceneOptions = {}): Promise<ApiScene> {
  const scene = await openApiScene({ ...CALM, ...options });
  opened.push(scene);
  return scene;
}

async function started(scene: ApiScene): Promise<ApiScene> {
  scene.source.start();
  await scene.store.whenSynced();
  return scene;
}

const web: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' };

function webWith(spec: Readonly<Record<string, unknown>> = {}): object {
  return named(meshEndpoints(spec), 'default/web');
}

describe('reading', () => {
  it('lists all pages, then watches', async () => {
    const scene = await open();
    const { server, changes, store } = scene;
    for (let at = 0; at < 45; at++) server.state.put(named(meshEndpoints(), `default/web-${at}`));
    server.settings.maxPageSize = 10;
    expect(store.isSynced()).toBe(false);
    await started(scene);
    expectInSync(scene);
    expect(changes.map(({ isInInitialList }) => isInInitialList)).toEqual(
      Array.from({ length: 45 }, () => true),
    );
    server.state.put(named(meshEndpoints(), 'team-a/web'));
    await eventually(() => expectInSync(scene));
    expect(changes[45]).toMatchObject({ key: 'MeshEndpoints/team-a/web', isInInitialList: false });
    expect(requestCounts(scene)).toEqual({ page: 5, watch: 1 });
  });

  it('lists 10,000 objects in pages of a hundred', async () => {
    const scene = await open();
    const { state } = scene.server;
    for (let at = 0; at < 10_000; at++) state.put(named(meshEndpoints(), `team-${at % 7}/web-${at}`));
    await started(scene);
    expect(scene.store.list('MeshEndpoints')).toHaveLength(10_000);
    expectInSync(scene);
    expect(requestCounts(scene)['page']).toBe(100);
    expect(scene.changes).toHaveLength(10_000);
  });

  it('notifies of nothing twice when it lists again', async () => {
    const scene = await open();
    const { server, changes } = scene;
    server.state.put(webWith());
    await started(scene);
    for (let times = 1; times <= 3; times++) {
      await untilWatching(scene);
      server.state.skip(10);
      server.state.compact();
      for (const watch of server.watches) watch.fail(410);
      await eventually(() => expect(requestCounts(scene)['page']).toBe(1 + times));
    }
    await untilWatching(scene);
    expectInSync(scene);
    expect(changes).toHaveLength(1);
  });

  it('removes what was deleted while the watch was silent', async () => {
    const scene = await open({ timing: { idleTimeoutMs: 300 } });
    const { server, store, changes } = scene;
    server.state.put(webWith());
    server.state.put(named(meshEndpoints(), 'default/db'));
    await started(scene);
    await untilWatching(scene);
    server.failNext(request => request.for === 'watch', '500', 2);
    for (const watch of server.watches) watch.inject('silence');
    server.state.remove(web);
    server.state.compact();
    await eventually(() => expect(store.get(web)).toBeUndefined());
    expectInSync(scene);
    expect(changes.at(-1)).toMatchObject({ key: 'MeshEndpoints/default/web', isInInitialList: false });
    expect(changes).toHaveLength(3);
  });

  it('keeps an object that was written during an older list', async () => {
    const scene = await open();
    const { server, store, source } = scene;
    server.state.put(webWith());
    server.settings.delayMs = 100;
    source.start();
    await eventually(() => expect(requestCounts(scene)['page']).toBe(1));
    const listed = server.state.revision;
    source.updates.put(server.state.put(webWith({ paused: true })));
    expect(store.get(web)?.spec.paused).toBe(true);
    await store.whenSynced();
    expect(Number(store.get(web)?.metadata.resourceVersion)).toBeGreaterThan(listed);
    expectInSync(scene);
  });

  it('has what was written at once, and notifies of it once', async () => {
    const scene = await started(await open());
    const { server, store, source, changes } = scene;
    await untilWatching(scene);
    for (const paused of [true, false, true]) {
      source.updates.put(server.state.put(webWith({ paused })));
      expect(store.get(web)?.spec.paused).toBe(paused);
    }
    server.state.put(named(meshEndpoints(), 'default/last'));
    await eventually(() => expectInSync(scene));
    expect(changes).toHaveLength(4);
  });

  it('follows a server that was restored from a backup', async () => {
    const scene = await open();
    const { server, store } = scene;
    server.state.put(webWith());
    await started(scene);
    await untilWatching(scene);
    const [before, at] = [server.state.list('MeshEndpoints'), server.state.revision];
    server.state.put(webWith({ paused: true }));
    server.state.put(named(meshEndpoints(), 'default/lost'));
    await eventually(() => expectInSync(scene));
    server.state.restore(before, at);
    server.disconnect();
    await eventually(() => expect(store.get(web)?.spec.paused).toBe(false));
    expectInSync(scene);
    server.state.put(webWith({ paused: true }));
    await eventually(() => expectInSync(scene));
  });

  it('reads several kinds over one connection each and four for the lists', async () => {
    const kinds: readonly ResourceKind[] = ['MeshEndpoints', 'MeshTailnet', 'HTTPRoute', 'Namespace'];
    const scene = await open({ kinds });
    const { server } = scene;
    server.state.put(webWith());
    server.state.put(named(meshTailnet(), 'example'));
    server.state.put(named({ apiVersion: 'v1', kind: 'Namespace' }, 'team-a', { labels: { mesh: 'yes' } }));
    await started(scene);
    server.state.put(route('HTTPRoute', 'team-a/web'));
    await eventually(() => kinds.forEach(kind => expectInSync(scene, kind)));
    expect(scene.store.list('Namespace')[0]?.metadata.labels).toEqual({ mesh: 'yes' });
    expect(server.connections).toBeLessThanOrEqual(kinds.length + 4);
  });
});

describe('a kind', () => {
  it('that is not served counts as empty, and is discovered again', async () => {
    const scene = await open({ kinds: ['TCPRoute', 'MeshEndpoints'] });
    const { server, store, lines, changes } = scene;
    server.state.serve('TCPRoute', []);
    server.state.put(webWith());
    await started(scene);
    await untilStates(scene, 'TCPRoute not-served', 'MeshEndpoints watching');
    expect(store.list('TCPRoute')).toEqual([]);
    server.state.serve('TCPRoute', ['v1alpha2', 'v1']);
    server.state.put(route('TCPRoute', 'default/web'));
    await eventually(() => expectInSync({ ...scene, server }, 'TCPRoute'));
    expect(store.list('TCPRoute')).toHaveLength(1);
    expect(changes.at(-1)).toMatchObject({ key: 'TCPRoute/default/web', isInInitialList: false });
    expect(lines.map(({ msg }) => msg)).toEqual([
      'the cluster does not serve a kind',
      'the cluster serves a kind now',
    ]);
  });

  it('is read in the preferred version that is served', async () => {
    const scene = await open({ kinds: ['TCPRoute', 'HTTPRoute'] });
    scene.server.state.serve('TCPRoute', ['v1alpha2']);
    scene.server.state.put(route('TCPRoute', 'default/web', {}, 'v1alpha2'));
    await started(scene);
    expect(scene.store.list('TCPRoute')[0]?.apiVersion).toMatch(/v1alpha2$/);
    const versions = scene.server.requests.flatMap(each => ('version' in each ? [each] : []));
    const tried = versions.filter(({ kind }) => kind === 'TCPRoute').map(({ version }) => version);
    expect(tried.slice(0, 2)).toEqual(['v1', 'v1alpha2']);
    expect(scene.lines).toEqual([]);
  });

  it('may be deleted, and created again with other objects', async () => {
    const scene = await open();
    const { server, store } = scene;
    for (const name of ['a', 'b']) server.state.put(named(meshEndpoints(), `default/${name}`));
    await started(scene);
    server.state.serve('MeshEndpoints', []);
    for (const watch of server.watches) watch.end();
    await untilStates(scene, 'MeshEndpoints not-served');
    expect(store.list('MeshEndpoints')).toEqual([]);
    server.state.serve('MeshEndpoints', ['v1alpha1']);
    for (const name of ['b', 'c'])
      server.state.put(named(meshEndpoints({ paused: true }), `default/${name}`));
    await eventually(() => expect(store.list('MeshEndpoints')).toHaveLength(2));
    expectInSync(scene);
    expect(scene.lines.map(({ msg }) => msg)).toContain('the cluster serves a kind now');
  });

  it('stays when a proxy answers 404 to everything', async () => {
    const scene = await open();
    const { server, store, changes } = scene;
    server.state.put(webWith());
    await started(scene);
    await untilWatching(scene);
    server.failNext(() => true, '404', 30);
    for (const watch of server.watches) watch.end();
    await eventually(() => expect(reflectorStates(scene)[0]).toMatch(/waiting after NotFound/));
    expect(store.list('MeshEndpoints')).toHaveLength(1);
    server.recover();
    server.state.put(webWith({ paused: true }));
    await eventually(() => expectInSync(scene));
    expect(changes).toHaveLength(2);
  });

  it('is not synced while a proxy answers 404 to everything', async () => {
    const scene = await open();
    const { server, store, source } = scene;
    server.state.put(webWith());
    server.failNext(() => true, '404', 1000);
    source.start();
    await eventually(() => expect(reflectorStates(scene)[0]).toMatch(/waiting after NotFound/));
    expect(store.isSynced()).toBe(false);
    server.recover();
    await store.whenSynced();
    expectInSync(scene);
  });
});

describe('an object that cannot be decoded', () => {
  it('keeps its last valid version, and is reported once', async () => {
    const scene = await open();
    const { server, store, lines, metrics } = scene;
    server.state.put(webWith({ paused: true }));
    server.state.put(named(meshEndpoints({ tailnet: 'not a domain' }), 'team-a/web'));
    await started(scene);
    server.state.put(webWith({ tailnet: 'no domain either' }));
    server.state.put(named(meshEndpoints(), 'default/last'));
    await eventually(() => expect(store.list('MeshEndpoints')).toHaveLength(2));
    expect(store.get(web)?.spec.paused).toBe(true);
    const families = parseExposition(await metrics.text());
    const labels = { kind: 'MeshEndpoints' };
    expect(valueOf(families, 'mesh_gateway_source_undecodable_objects', labels)).toBe(2);
    expect(lines).toMatchObject([
      { level: 'warn', kind: 'MeshEndpoints', namespace: 'team-a', name: 'web' },
      { level: 'warn', kind: 'MeshEndpoints', namespace: 'default', name: 'web' },
    ]);
    server.state.put(webWith());
    server.state.remove({ ...web, namespace: 'team-a' });
    await eventually(() => expectInSync(scene));
  });
});

describe('telemetry of reading', () => {
  it('logs each reason of failures once', async () => {
    const scene = await open();
    const { server, lines, store, source } = scene;
    server.failNext(request => request.for === 'page', '403', 4);
    source.start();
    await untilStates(scene, 'MeshEndpoints waiting after Forbidden');
    expect(store.isSynced()).toBe(false);
    await store.whenSynced();
    await untilWatching(scene);
    expect(lines).toMatchObject([
      { level: 'warn', msg: 'the cluster cannot be read', kind: 'MeshEndpoints', reason: 'Forbidden' },
      { level: 'info', msg: 'the cluster can be read again', kind: 'MeshEndpoints' },
    ]);
    expect(lines[0]?.['error']).toMatch(/the test answers 403/);
  });

  it('counts lists, watches, changes, failures and objects', async () => {
    const scene = await open();
    const { server, metrics } = scene;
    server.state.put(webWith());
    server.failNext(request => request.for === 'page', '500', 2);
    await started(scene);
    await untilWatching(scene);
    server.state.put(named(meshEndpoints(), 'default/db'));
    await eventually(() => expectInSync(scene));
    const families = parseExposition(await metrics.text());
    const valueFor = (name: string, more = {}) =>
      valueOf(families, `mesh_gateway_source_${name}`, { kind: 'MeshEndpoints', ...more });
    expect(valueFor('lists_total')).toBe(1);
    expect(valueFor('watches_total')).toBe(1);
    expect(valueFor('events_total')).toBe(1);
    expect(valueFor('failures_total', { reason: 'Failed' })).toBe(2);
    expect(valueFor('failures_total', { reason: 'Expired' })).toBe(0);
    expect(valueFor('objects')).toBe(2);
  });
});
