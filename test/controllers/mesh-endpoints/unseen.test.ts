import { describe, expect, it } from 'vitest';
import { SEEN_MS } from '../../../src/traffic/unseen.ts';
import { EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { accept, bind } from '../../support/controllers/mesh-endpoints/translated.ts';
import { meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const tailnet = named(meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), 'one');
const CREATED = { creationTimestamp: '2026-01-15T12:00:00Z' };

const endpointsIn = (name = 'default/web', protocol = 'HTTP') =>
  named(meshEndpoints({ endpoints: [endpoint({ protocol })] }), name, CREATED);

type Kind = 'HTTPRoute' | 'GRPCRoute';

/** A route, and what Envoy Gateway reports about its backends. */
function routeTo(
  backendRefs: readonly object[],
  {
    kind = 'HTTPRoute',
    reason = 'BackendNotFound',
    name = 'default/web',
  }: { kind?: Kind; reason?: string; name?: string } = {},
): object {
  const status = reason === 'ResolvedRefs' ? 'True' : 'False';
  return {
    ...named(route(kind, name, { rules: [{ backendRefs }] }), name, CREATED),
    status: { parents: [{ conditions: [{ type: 'ResolvedRefs', status, reason }] }] },
  };
}

/** A route that also mirrors to its MeshEndpoints. */
function mirrored(): object {
  const filters = [{ type: 'RequestMirror', requestMirror: { backendRef: meshBackend() } }];
  const rules = [{ backendRefs: [meshBackend()], filters }];
  return { ...routeTo([]), ...route('HTTPRoute', 'default/web', { rules }) };
}

/** A scene in which Envoy Gateway has translated all, and has had the time to report. */
async function sceneWith(...objects: readonly object[]): Promise<EndpointsScene> {
  const scene = await EndpointsScene.start(openGateway('default/public'), tailnet);
  await scene.observe(...objects);
  await bind(scene);
  await accept(scene);
  await scene.runtime.clock.advance(SEEN_MS + 1);
  return scene;
}

const programmedOf = (scene: EndpointsScene) => {
  const { status, reason } = scene.status()?.conditions?.find(({ type }) => type === 'Programmed') ?? {};
  return `${status} ${reason}`;
};

describe('a route that lacks a backend for Envoy Gateway although its MeshEndpoints exist', () => {
  it.each([
    ['HTTPRoute', 'HTTP'],
    ['GRPCRoute', 'gRPC'],
  ] as const)('makes Programmed False 30 s after all of them exist: %s', async (kind, protocol) => {
    const scene = await EndpointsScene.start(openGateway('default/public'), tailnet);
    await scene.observe(endpointsIn('default/web', protocol), routeTo([meshBackend()], { kind }));
    await bind(scene);
    await accept(scene);
    await scene.runtime.clock.advance(SEEN_MS - 1000);
    expect(programmedOf(scene)).toBe('True Programmed');
    await scene.runtime.clock.advance(1001);
    expect(scene.status()?.conditions?.find(({ type }) => type === 'Programmed')).toMatchObject({
      status: 'False',
      reason: 'NotSeen',
      message: `Envoy Gateway reports BackendNotFound for ${kind} default/web though its MeshEndpoints exist, and answers its requests with 500: restart it if it started before the CRD of MeshEndpoints was served, as mesh-gateway doctor shows, such as by kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway; else let its watch include their namespaces`,
    });
  });

  it('counts no longer once Envoy Gateway has been restarted', async () => {
    const scene = await sceneWith(endpointsIn(), routeTo([meshBackend()]));
    expect(programmedOf(scene)).toBe('False NotSeen');
    await scene.observe(routeTo([meshBackend()], { reason: 'ResolvedRefs' }));
    expect(programmedOf(scene)).toBe('True Programmed');
  });

  it('counts 30 s after the last of its MeshEndpoints was created', async () => {
    const both = [meshBackend(), meshBackend({ name: 'other' })];
    const scene = await sceneWith(endpointsIn(), routeTo(both));
    expect(programmedOf(scene)).toBe('True Programmed');
    const other = named(meshEndpoints(), 'default/other', { creationTimestamp: '2026-01-15T12:00:30Z' });
    await scene.observe(other);
    await bind(scene);
    await accept(scene);
    await scene.runtime.clock.advance(SEEN_MS - 1000);
    expect(programmedOf(scene)).toBe('True Programmed');
    await scene.runtime.clock.advance(1001);
    expect(programmedOf(scene)).toBe('False NotSeen');
  });
});

describe('a route that lacks a backend', () => {
  it.each([
    ['a MeshEndpoints that does not exist', routeTo([meshBackend(), meshBackend({ name: 'gone' })])],
    ['a Service, which the operator does not read', routeTo([meshBackend(), { name: 'shop', port: 80 }])],
    ['a mirrored MeshEndpoints', mirrored()],
    ['another reason', routeTo([meshBackend()], { reason: 'RefNotPermitted' })],
  ])('does not make Programmed False for %s', async (_what, object) => {
    const scene = await sceneWith(endpointsIn(), object);
    expect(programmedOf(scene)).toBe('True Programmed');
  });

  it('does not make Programmed False from a namespace that may not name the object', async () => {
    const foreign = routeTo([meshBackend({ namespace: 'default' })], { name: 'other/web' });
    const scene = await sceneWith(
      endpointsIn(),
      routeTo([meshBackend()], { reason: 'ResolvedRefs' }),
      foreign,
    );
    expect(programmedOf(scene)).toBe('True Programmed');
  });
});
