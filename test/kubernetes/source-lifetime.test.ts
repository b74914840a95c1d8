import { afterEach, describe, expect, it } from 'vitest';
import type { Ref } from '../../src/api/key.ts';
import { openKubernetes } from '../../src/kubernetes/connect.ts';
import type { KubernetesOptions } from '../../src/kubernetes/connect.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { eventually } from '../support/eventually.ts';
import { named } from '../support/declared.ts';
import { requestCounts, untilStates, untilWatching } from '../support/kubernetes/api-requests.ts';
import { openApiScene } from '../support/kubernetes/api-scene.ts';
import type { ApiScene, ApiSceneOptions } from '../support/kubernetes/api-scene.ts';
import { meshEndpoints } from '../support/objects.ts';

const opened: ApiScene[] = [];
afterEach(async () => {
  for (const scene of opened.splice(0)) await scene.close();
});

async function open(options: ApiSceneOptions = {}): Promise<ApiScene> {
  const scene = await openApiScene({ timeoutMs: 60_000, ...options });
  opened.push(scene);
  return scene;
}

const web: Ref<'MeshEndpoints'> = { kind: 'MeshEndpoints', namespace: 'default', name: 'web' };

function webWith(spec: Readonly<Record<string, unknown>> = {}): object {
  return named(meshEndpoints(spec), 'default/web');
}

describe('closing', () => {
  it.each<[string, (scene: ApiScene) => Promise<unknown> | void]>([
    ['before it began', () => undefined],
    [
      'during a list',
      scene => {
        scene.server.settings.delayMs = 10_000;
        scene.source.start();
        return eventually(() => expect(requestCounts(scene)['page']).toBe(1));
      },
    ],
    [
      'on the third page',
      scene => {
        for (let at = 0; at < 30; at++) scene.server.state.put(named(meshEndpoints(), `default/web-${at}`));
        scene.server.settings.maxPageSize = 10;
        scene.server.failNext(request => request.for === 'page' && request.page === 3, 'slow drip');
        scene.source.start();
        return eventually(() => expect(requestCounts(scene)['page']).toBe(3));
      },
    ],
    [
      'during discovery',
      scene => {
        scene.server.state.serve('MeshEndpoints', []);
        scene.server.failNext(request => request.for === 'discovery', 'silence', 9);
        scene.source.start();
        return eventually(() => expect(requestCounts(scene)['discovery']).toBeGreaterThan(0));
      },
    ],
    [
      'while a kind is not served',
      scene => {
        scene.server.state.serve('MeshEndpoints', []);
        scene.source.start();
        return untilStates(scene, 'MeshEndpoints not-served');
      },
    ],
    [
      'while a watch opens',
      scene => {
        scene.server.failNext(request => request.for === 'watch', 'silence', 99);
        scene.source.start();
        return eventually(() => expect(requestCounts(scene)['watch']).toBeGreaterThan(0));
      },
    ],
    [
      'while it watches',
      scene => {
        scene.source.start();
        return untilWatching(scene);
      },
    ],
    [
      'in backoff',
      scene => {
        scene.server.failNext(() => true, '500', 9999);
        scene.source.start();
        return untilStates(scene, 'MeshEndpoints waiting after Failed');
      },
    ],
  ])('%s leaves nothing behind', async (_when, bring) => {
    const scene = await open({ timing: { maxBackoffMs: 60_000, rediscoverMs: 60_000 } });
    await bring(scene);
    await scene.source.close();
    expect(scene.timers()).toBe(0);
    await eventually(() => expect(scene.server.watches).toEqual([]));
    const requests = scene.server.requests.length;
    scene.server.recover();
    scene.server.settings.delayMs = 0;
    scene.server.state.put(webWith());
    await scene.transport.send({ verb: 'get', path: '/apis' });
    expect(scene.server.requests).toHaveLength(requests + 1);
    expect(scene.store.get(web)).toBeUndefined();
    expect(scene.telemetry.activities.list().has('source kubernetes')).toBe(false);
    expect(scene.failures).toEqual([]);
  });
});

describe('opening a cluster', () => {
  const openIt = async (options: Partial<KubernetesOptions>, reportFailure: (failure: unknown) => void) => {
    const { server, transport, telemetry } = await open();
    const rest = { indexes: [], clock: systemClock, random: Math.random, telemetry, reportFailure };
    return { server, ...openKubernetes({ transport, kinds: ['MeshEndpoints'], ...rest, ...options }) };
  };

  it('for no kinds is synced at once', async () => {
    const { read, start, close } = await openIt({ kinds: [] }, () => undefined);
    expect(read.isSynced()).toBe(false);
    start();
    await read.whenSynced();
    await close();
    expect(read.isSynced()).toBe(true);
  });
});
