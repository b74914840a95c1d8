import { afterEach, describe, expect, it } from 'vitest';
import type { Ref } from '../../../src/api/key.ts';
import { openKubernetes } from '../../../src/resources/kubernetes.ts';
import type { KubernetesOptions } from '../../../src/resources/kubernetes.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { named } from '../../support/declared.ts';
import { asked, doing, watched } from '../../support/kubernetes/api-look.ts';
import { openApiScene } from '../../support/kubernetes/api-scene.ts';
import type { ApiScene, ApiSceneWish } from '../../support/kubernetes/api-scene.ts';
import { meshEndpoints } from '../../support/objects.ts';

const opened: ApiScene[] = [];
afterEach(async () => {
  for (const scene of opened.splice(0)) await scene.close();
});

async function open(wish: ApiSceneWish = {}): Promise<ApiScene> {
  const scene = await openApiScene({ answerWithinMs: 60_000, ...wish });
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
      'in a list',
      scene => {
        scene.server.settings.delayMs = 10_000;
        scene.source.start();
        return eventually(() => expect(asked(scene)['page']).toBe(1));
      },
    ],
    [
      'on the third page',
      scene => {
        for (let at = 0; at < 30; at++) scene.server.truth.put(named(meshEndpoints(), `default/web-${at}`));
        scene.server.settings.mostPerPage = 10;
        scene.server.spoil(request => request.for === 'page' && request.page === 3, 'slow drip');
        scene.source.start();
        return eventually(() => expect(asked(scene)['page']).toBe(3));
      },
    ],
    [
      'while it asks what is served',
      scene => {
        scene.server.truth.serve('MeshEndpoints', []);
        scene.server.spoil(request => request.for === 'discovery', 'silence', 9);
        scene.source.start();
        return eventually(() => expect(asked(scene)['discovery']).toBeGreaterThan(0));
      },
    ],
    [
      'while a kind is not served',
      scene => {
        scene.server.truth.serve('MeshEndpoints', []);
        scene.source.start();
        return doing(scene, 'MeshEndpoints not-served');
      },
    ],
    [
      'while a watch opens',
      scene => {
        scene.server.spoil(request => request.for === 'watch', 'silence', 99);
        scene.source.start();
        return eventually(() => expect(asked(scene)['watch']).toBeGreaterThan(0));
      },
    ],
    [
      'while it watches',
      scene => {
        scene.source.start();
        return watched(scene);
      },
    ],
    [
      'in backoff',
      scene => {
        scene.server.spoil(() => true, '500', 9999);
        scene.source.start();
        return doing(scene, 'MeshEndpoints waiting after Failed');
      },
    ],
  ])('%s leaves nothing behind', async (_when, bring) => {
    const scene = await open({ timing: { maxBackoffMs: 60_000, rediscoverMs: 60_000 } });
    await bring(scene);
    await scene.source.close();
    expect(scene.timers()).toBe(0);
    await eventually(() => expect(scene.server.watches).toEqual([]));
    const requests = scene.server.requests.length;
    scene.server.heal();
    scene.server.settings.delayMs = 0;
    scene.server.truth.put(webWith());
    await scene.transport.send({ verb: 'get', path: '/apis' });
    expect(scene.server.requests).toHaveLength(requests + 1);
    expect(scene.store.get(web)).toBeUndefined();
    expect(scene.telemetry.activities.list().has('source kubernetes')).toBe(false);
    expect(scene.failures).toEqual([]);
  });
});

describe('opening a cluster', () => {
  const openIt = async (wish: Partial<KubernetesOptions>, reportFailure: (failure: unknown) => void) => {
    const { server, transport, telemetry } = await open();
    const rest = { indexes: [], clock: systemClock, random: Math.random, telemetry, reportFailure };
    return { server, ...openKubernetes({ transport, kinds: ['MeshEndpoints'], ...rest, ...wish }) };
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
