import { describe, expect, it } from 'vitest';
import { meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { accept, bind, bindingIn } from '../../support/controllers/mesh-endpoints/translated.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const EXTERNAL = { pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } };
const tailnet = named(meshTailnet(EXTERNAL), 'one');
/** Envoy Gateway translates checks of endpoints, but not their addresses. */
const checkedAt = (path: string) =>
  meshEndpoints({ endpoints: [endpoint({ healthCheck: { enabled: true, path } })] });
const web = (path = '/') => named(checkedAt(path), 'default/web');
const toWeb = (name = 'default/web') =>
  route('HTTPRoute', name, { rules: [{ backendRefs: [meshBackend()] }] });

/** Another route of the Gateway. */
const other = (name: string) =>
  route('HTTPRoute', 'default/other', { rules: [{ backendRefs: [meshBackend({ name })] }] });

const programmedOf = (scene: EndpointsScene) =>
  scene.status()?.conditions?.find(({ type }) => type === 'Programmed');

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
    await scene.runtime.clock.advance(30_000);
    expect(programmedOf(scene)?.message).toMatch(
      /^Envoy Gateway has not reported in MeshBinding default\/public/,
    );
    const { writes } = scene;
    await bind(scene);
    await bind(scene, 1);
    await scene.runtime.clock.advance(60_000);
    expect(scene.writes).toBe(writes);
    await accept(scene, 'False');
    expect(programmedOf(scene)?.status).toBe('Unknown');
    await accept(scene);
    expect(programmedOf(scene)).toMatchObject({ status: 'True', reason: 'Programmed' });
  });

  it('stays True while the same revision is translated once more, and while other objects change', async () => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, web(), toWeb());
    await bind(scene);
    await accept(scene);
    const { writes } = scene;
    await bind(scene, 1);
    await scene.put(other('a'));
    await bind(scene);
    await scene.runtime.clock.advance(60_000);
    await scene.restart();
    expect([programmedOf(scene)?.status, scene.writes]).toEqual(['True', writes]);
  });

  it('as it becomes True is read once, and no revision of others is afterwards', async () => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, toWeb());
    await bind(scene);
    await scene.put(web());
    await bind(scene);
    await accept(scene);
    // One wrote that it is Unknown, one that it is True.
    expect([programmedOf(scene)?.status, await scene.reconciles()]).toEqual(['True', 2]);
    await scene.put(other('a'));
    await bind(scene);
    await accept(scene);
    expect([programmedOf(scene)?.status, await scene.reconciles()]).toEqual(['True', 2]);
  });

  it.each<readonly [string, object]>([
    ['the object', web('/a')],
    ['its routes', toWeb('default/other')],
  ])('is Unknown again after a change of %s, until that is translated', async (_, change) => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, web(), toWeb());
    await bind(scene);
    await accept(scene);
    await scene.put(change);
    expect(programmedOf(scene)).toMatchObject({ status: 'Unknown' });
    await accept(scene);
    expect(programmedOf(scene)).toMatchObject({ status: 'Unknown' });
    await bind(scene);
    expect(programmedOf(scene)).toMatchObject({ status: 'Unknown' });
    await accept(scene);
    expect(programmedOf(scene)).toMatchObject({ status: 'True' });
  });

  it('is True once a revision with its own settings is translated, although others change all the time', async () => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, web(), toWeb());
    await bind(scene);
    // Each report is about a revision that is no longer the present one, nor that of the MeshBinding.
    for (const name of ['a', 'b']) {
      const reported = bindingIn(scene);
      await scene.put(other(name));
      await bind(scene);
      await accept(scene, 'True', reported);
    }
    expect(programmedOf(scene)).toMatchObject({ status: 'True' });
    await scene.put(web('/c'));
    const before = bindingIn(scene);
    await bind(scene);
    const withOwn = bindingIn(scene);
    await accept(scene, 'True', before);
    expect(programmedOf(scene)).toMatchObject({ status: 'Unknown' });
    await scene.put(other('d'));
    await bind(scene);
    await accept(scene, 'True', withOwn);
    expect(programmedOf(scene)).toMatchObject({ status: 'True' });
  });

  it('is of no revision that this process does not know, such as one of an earlier process', async () => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet, web(), toWeb());
    await bind(scene);
    const binding = bindingIn(scene);
    await scene.put(
      named({ ...binding, spec: { ...binding.spec, revision: 'aaaaaaaaaaaaaaaa' } }, 'default/public'),
    );
    await accept(scene);
    expect(programmedOf(scene)).toMatchObject({ status: 'Unknown' });
  });
});
