import { afterEach, describe, expect, it } from 'vitest';
import { createdTailnetName } from '../../../../src/api/names.ts';
import { validate } from '../../../../src/api/validation/validate.ts';
import { createdTailnet } from '../../../../src/controllers/mesh-tailnet/creation/plan.ts';
import {
  CREATED_SETTINGS,
  creationReconciler,
} from '../../../../src/controllers/mesh-tailnet/creation/reconcile.ts';
import type { Tailnets, TailnetView } from '../../../../src/control/control.ts';
import { tailnetIndexes } from '../../../../src/controllers/mesh-tailnet/controller.ts';
import { endpointsByTailnet, sharedIndexes } from '../../../../src/store/indexes.ts';
import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { Runtime } from '../../../support/runtime/runtime.ts';
import { OwnNamespace, startScene } from '../../../support/control/scene.ts';
import type { Scene, SceneOptions } from '../../../support/control/scene.ts';
import { named } from '../../../support/declared.ts';
import { eventually } from '../../../support/eventually.ts';
import { meshEndpoints, meshTailnet } from '../../../support/objects.ts';

const scenes: Scene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

async function sceneOf(options: SceneOptions = {}): Promise<Scene> {
  const scene = await startScene(options);
  scenes.push(scene);
  return scene;
}

it('devices are listed with the settings that a created MeshTailnet gets by default', () => {
  const verdict = validate('MeshTailnet', createdTailnet('example.ts.net'));
  if (!verdict.valid) throw new Error(verdict.faults.map(({ message }) => message).join('; '));
  const { oauth, dialect, controlURL, controlCA, proxyURL, rateLimit, syncInterval } = verdict.object.spec;
  const settings = { oauth, dialect, controlURL, controlCA, proxyURL, rateLimit, syncInterval };
  expect(settings).toEqual(CREATED_SETTINGS);
});

describe('MeshEndpoints without a MeshTailnet', () => {
  const web = (tailnet: string) => named(meshEndpoints({ tailnet }), 'default/web');
  const refOf = (name: string) => ({ kind: 'MeshTailnet', namespace: '', name }) as const;

  /** With one that was created for a MeshEndpoints. */
  async function createdScene() {
    const scene = await sceneOf({ isDefault: true, objects: [] });
    scene.api.addDevice({ hostname: 'web-1' });
    await scene.put(web('example.ts.net'));
    await eventually(async () => {
      await scene.clock.advance(0);
      expect(scene.condition('Authenticated', 'example-ts-net')).toMatchObject({ status: 'True' });
    });
    return scene;
  }

  it('get one where the Secret of the contract lists a device in their domain, until they are deleted', async () => {
    const { memory, clock } = await createdScene();
    expect(memory.read.get(refOf('example-ts-net'))).toMatchObject({
      metadata: { labels: { 'app.kubernetes.io/managed-by': 'mesh-gateway' } },
      spec: { tailnet: 'example.ts.net' },
    });
    await memory.author.remove({ kind: 'MeshEndpoints', namespace: 'default', name: 'web' });
    await eventually(async () => {
      await clock.advance(0);
      expect(memory.read.get(refOf('example-ts-net'))).toBeUndefined();
    });
  });

  it('get none for the domain of another tailnet, and none without the Secret', async () => {
    const other = await sceneOf({ isDefault: true, objects: [] });
    other.api.addDevice({ hostname: 'web-1' });
    await other.put(web('other.ts.net'));
    const without = await sceneOf({ isDefault: true, objects: [], hasSecret: false });
    await without.put(web('example.ts.net'));
    expect([other, without].flatMap(({ memory }) => memory.read.list('MeshTailnet'))).toEqual([]);
  });

  it('get none for the end of a domain, however many there are', async () => {
    const { api, put, interval, memory } = await sceneOf({ isDefault: true, objects: [] });
    api.addDevice({ hostname: 'web-1' });
    for (const [name, tailnet] of Object.entries({
      one: 'net',
      two: 'ts.net',
      three: 'web-1.example.ts.net',
    })) {
      await put(named(meshEndpoints({ tailnet }), `default/${name}`));
    }
    await interval();
    expect(memory.read.list('MeshTailnet')).toEqual([]);
  });

  it('get one although others name a domain whose MeshTailnet would have the same name', async () => {
    const { api, put, clock, memory } = await sceneOf({ isDefault: true, objects: [] });
    api.addDevice({ hostname: 'web-1' });
    await put(named(meshEndpoints({ tailnet: 'example-ts.net' }), 'others/web'));
    await put(web('example.ts.net'));
    await eventually(async () => {
      await clock.advance(1000);
      expect(memory.read.get(refOf('example-ts-net'))?.spec.tailnet).toBe('example.ts.net');
    });
  });

  it('of many unknown domains cause one list in an interval together', async () => {
    const { api, put, interval, metrics, memory, clock } = await sceneOf({ isDefault: true, objects: [] });
    const names = ['one', 'two', 'three'];
    for (const name of names) {
      await put(named(meshEndpoints({ tailnet: `${name}.ts.net` }), `default/${name}`));
    }
    const before = api.countByRoute();
    await interval();
    const { token, 'devices.list': lists } = api.countByRoute();
    expect([token, lists]).toEqual([before['token'], (before['devices.list'] ?? 0) + 1]);
    expect(token).toBe(1);
    expect(await metrics()).not.toContain('ts-net');
    for (const name of names) {
      await memory.author.remove({ kind: 'MeshEndpoints', namespace: 'default', name });
    }
    await eventually(async () => {
      await clock.advance(0);
      expect(await metrics()).not.toContain('snapshot_age_seconds{');
    });
  });

  it('give theirs up for one that a user creates', async () => {
    const { api, put, memory, clock, condition } = await createdScene();
    await put(named(meshTailnet({ controlURL: api.url }), 'mine'));
    await eventually(async () => {
      await clock.advance(0);
      expect(memory.read.list('MeshTailnet').map(({ metadata }) => metadata.name)).toEqual(['mine']);
      expect(condition('Authenticated', 'mine')).toMatchObject({ status: 'True' });
    });
  });
});

describe('the control API at which MeshTailnets are looked for', () => {
  const web = (tailnet: string) => named(meshEndpoints({ tailnet }), 'default/web');
  const headscale = { tailnet: 'mesh.example.com', controlURL: 'https://headscale.example.com' };

  /** The URLs at which devices are listed with the Secret of the contract. */
  async function urlsOf(objects: readonly object[], controlURL: string | undefined) {
    const runtime = new Runtime(objects, [...trafficIndexes, ...sharedIndexes, ...tailnetIndexes]);
    const { clock, memory, tracking } = runtime;
    const ownNamespace = new OwnNamespace();
    ownNamespace.put('id', 'secret');
    const urls = new Set<string>();
    const observe: Tailnets['observe'] = ({ endpoint }) => {
      urls.add(endpoint.url);
      return Promise.resolve({ devices: [] } as unknown as TailnetView);
    };
    const tailnets = { observe, lastView: () => undefined, forget: () => undefined };
    const create = creationReconciler({ tracking, write: memory.write, tailnets, ownNamespace, controlURL });
    runtime.start({
      kind: 'MeshTailnet',
      reads: ['MeshTailnet', 'MeshEndpoints'],
      keys: read =>
        read
          .values(endpointsByTailnet)
          .map(domain => ({ kind: 'MeshTailnet', namespace: '', name: createdTailnetName(domain) })),
      reconcile: (ref, read) => create(ref.name, read.get(ref), read),
    });
    await memory.start();
    await clock.advance(60_000);
    return [...urls];
  }

  it.each<[string, readonly object[], string | undefined, readonly string[]]>([
    ["is the vendor's for its domains", [web('one.ts.net')], undefined, ['https://api.tailscale.com']],
    ['is that of the configuration', [web('one.ts.net')], 'https://a.example', ['https://a.example']],
    ['is none for other domains', [web('mesh.example.com')], undefined, []],
    [
      "is not the vendor's with the Secret of another one",
      [web('one.ts.net'), named(meshTailnet(headscale), 'headscale')],
      undefined,
      [],
    ],
  ])('%s', async (_, objects, controlURL, urls) => {
    expect(await urlsOf(objects, controlURL)).toEqual(urls);
  });
});
