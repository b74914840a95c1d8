import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { endpoint, meshBinding, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const EXTERNAL = { pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } };
const tailnet = named(meshTailnet(EXTERNAL), 'one');
const web = (port = 8080) => named(meshEndpoints({ endpoints: [endpoint({ port })] }), 'default/web');
const toWeb = (port = 8080, name = 'default/web') =>
  route('HTTPRoute', name, { rules: [{ backendRefs: [meshBackend({ port })] }] });

const programmedOf = (scene: EndpointsScene) =>
  scene.status()?.conditions?.find(({ type }) => type === 'Programmed');

/** The operator writes the MeshBinding of Gateway public. */
async function bind(scene: EndpointsScene, revision: string, attempt = 0): Promise<void> {
  scene.revisions.set('public', revision);
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'public' }];
  await scene.put(named(meshBinding({ targetRefs, revision, attempt }), 'default/public'));
}

/** Envoy Gateway reports that it has accepted the MeshBinding. */
async function accept(scene: EndpointsScene, status: 'True' | 'False' = 'True'): Promise<void> {
  const { read, write } = scene.runtime.memory;
  const binding = read.get({ kind: 'MeshBinding', namespace: 'default', name: 'public' });
  if (!binding) throw new Error('there is no MeshBinding');
  const { generation: observedGeneration = 0 } = binding.metadata;
  const condition = {
    type: 'Accepted',
    status,
    reason: 'Accepted',
    message: '',
    observedGeneration,
    lastTransitionTime: '2026-01-15T12:00:00Z',
  };
  const ancestors = [
    { ancestorRef: { name: 'public' }, controllerName: 'example.com/gateway', conditions: [condition] },
  ];
  await write.replaceStatus<Kinds['MeshBinding']>(binding, { ancestors });
  await scene.runtime.clock.settle();
}

describe('the condition Programmed', () => {
  it('is Unknown while no Gateway is known for any route', async () => {
    const scene = await EndpointsScene.start(tailnet, web(), toWeb());
    expect(programmedOf(scene)).toMatchObject({
      status: 'Unknown',
      reason: 'NotReported',
      message:
        'no Gateway exists that accepts a route to this object: see parentRefs of its routes, and allowedRoutes and allowedListeners of their Gateways',
    });
  });

  it('is True once Envoy Gateway has accepted the present revision', async () => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, web(), toWeb());
    scene.revisions.set('public', 'aaaaaaaaaaaaaaaa');
    await scene.runtime.clock.advance(30_000);
    expect(programmedOf(scene)?.message).toMatch(
      /^Envoy Gateway has not reported in MeshBinding default\/public/,
    );
    const { writes } = scene;
    await bind(scene, 'aaaaaaaaaaaaaaaa');
    await bind(scene, 'bbbbbbbbbbbbbbbb');
    await bind(scene, 'aaaaaaaaaaaaaaaa');
    await scene.runtime.clock.advance(60_000);
    expect(scene.writes).toBe(writes);
    await accept(scene, 'False');
    expect(programmedOf(scene)?.status).toBe('Unknown');
    await accept(scene);
    expect(programmedOf(scene)).toMatchObject({ status: 'True', reason: 'Programmed' });
  });

  it('stays True while the same revision is translated once more, and while other objects change', async () => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, web(), toWeb());
    await bind(scene, 'aaaaaaaaaaaaaaaa');
    await accept(scene);
    const { writes } = scene;
    await bind(scene, 'aaaaaaaaaaaaaaaa', 1);
    await bind(scene, 'bbbbbbbbbbbbbbbb');
    await scene.runtime.clock.advance(60_000);
    await scene.restart();
    expect([programmedOf(scene)?.status, scene.writes]).toEqual(['True', writes]);
  });

  it.each<readonly [string, object]>([
    ['the object', web(8081)],
    ['its routes', toWeb(8080, 'default/other')],
  ])('is Unknown again after a change of %s, until that is translated', async (_, change) => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, web(), toWeb());
    await bind(scene, 'aaaaaaaaaaaaaaaa');
    await accept(scene);
    scene.revisions.set('public', 'bbbbbbbbbbbbbbbb');
    await scene.put(change);
    expect(programmedOf(scene)).toMatchObject({ status: 'Unknown' });
    await bind(scene, 'bbbbbbbbbbbbbbbb');
    expect(programmedOf(scene)).toMatchObject({ status: 'Unknown' });
    await accept(scene);
    expect(programmedOf(scene)).toMatchObject({ status: 'True' });
  });
});
