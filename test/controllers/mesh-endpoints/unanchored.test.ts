import { describe, expect, it } from 'vitest';
import type { RouteKind } from '../../../src/api/key.ts';
import { ANCHOR } from '../../../src/api/names.ts';
import { SEEN_MS } from '../../../src/traffic/unseen.ts';
import { EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';

const tailnet = named(meshTailnet({ pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } }), 'one');
const protocols = { HTTPRoute: 'HTTP', GRPCRoute: 'gRPC', TLSRoute: 'TLS', TCPRoute: 'TCP', UDPRoute: 'UDP' };
const CREATED = { creationTimestamp: '2026-01-15T12:00:00Z' };
const web = (kind: RouteKind = 'TCPRoute') =>
  named(meshEndpoints({ endpoints: [endpoint({ protocol: protocols[kind] })] }), 'default/web', CREATED);

/** ResolvedRefs of an object as Envoy Gateway reports it; without a reason it is True. */
function withReport(object: object, reason?: string): object {
  const resolved =
    reason === undefined ? { status: 'True', reason: 'ResolvedRefs' } : { status: 'False', reason };
  return { ...object, status: { parents: [{ conditions: [{ type: 'ResolvedRefs', ...resolved }] }] } };
}

const unresolved = (kind: RouteKind = 'TCPRoute', spec: Readonly<Record<string, unknown>> = {}) =>
  withReport(named(route(kind, 'default/web', spec), 'default/web', CREATED), 'BackendNotFound');

/** An anchor for default/web, created when scenes start. */
function anchor(namespace = 'mesh-system'): object {
  const backendRefs = [meshBackend({ namespace: 'default', weight: 0, port: undefined })];
  const parentRefs = [{ namespace: 'default', name: 'public', sectionName: ANCHOR.sectionName }];
  return named(
    gatewayObject('HTTPRoute', 'anchor', { parentRefs, rules: [{ backendRefs }] }),
    `${namespace}/mesh-anchor-0`,
    { labels: { [ANCHOR.label]: 'true' }, ...CREATED },
  );
}

const messageOf = (scene: EndpointsScene) => scene.status()?.routes?.[0]?.message;

const HIDDEN =
  'traffic flows, but Envoy Gateway reports ResolvedRefs False/BackendNotFound, because it has not seen HTTPRoute mesh-system/mesh-anchor-0: let namespaceSelector or namespaces of its provider.kubernetes.watch include namespace mesh-system, or set routeStatus.anchors to false in a MeshGateway to have no such HTTPRoutes';

/** A scene in which Envoy Gateway has had the time to report. */
async function sceneWith(...observed: readonly object[]): Promise<EndpointsScene> {
  const scene = await EndpointsScene.start(tailnet);
  await scene.observe(web(), ...observed);
  await scene.runtime.clock.advance(SEEN_MS + 1);
  return scene;
}

describe('an anchor without a status from Envoy Gateway', () => {
  it.each(['TLSRoute', 'TCPRoute'] as const)('is reported in the status of a %s after 30 s', async kind => {
    const scene = await EndpointsScene.start(tailnet, web(kind));
    await scene.observe(unresolved(kind), anchor());
    await scene.runtime.clock.advance(SEEN_MS - 1000);
    expect(scene.status()?.routes).toMatchObject([{ kind, resolved: true }]);
    expect(messageOf(scene)).toBeUndefined();
    await scene.runtime.clock.advance(1001);
    expect(scene.status()?.routes).toEqual([
      { kind, namespace: 'default', name: 'web', resolved: true, message: HIDDEN },
    ]);
    expect(scene.status()?.conditions).toContainEqual(
      expect.objectContaining({ type: 'RoutesResolved', status: 'True' }),
    );
  });

  it('is no longer reported once the route is resolved, or the anchor is deleted', async () => {
    const scene = await sceneWith(unresolved(), anchor());
    await scene.observe(withReport(route('TCPRoute', 'default/web')));
    expect(messageOf(scene)).toBeUndefined();
    await scene.observe(unresolved());
    expect(messageOf(scene)).toBe(HIDDEN);
    await scene.remove('HTTPRoute/mesh-system/mesh-anchor-0');
    expect(messageOf(scene)).toBeUndefined();
  });

  it('is not reported where Envoy Gateway has another reason, or has reported nothing', async () => {
    const scene = await sceneWith(anchor(), withReport(route('TCPRoute', 'default/web'), 'RefNotPermitted'));
    expect(messageOf(scene)).toBeUndefined();
    const silent = await sceneWith(anchor(), route('TCPRoute', 'default/web'));
    expect(messageOf(silent)).toBeUndefined();
  });

  it('is not reported for an HTTPRoute, which needs none', async () => {
    const scene = await EndpointsScene.start(tailnet, web('HTTPRoute'));
    await scene.observe(unresolved('HTTPRoute'), anchor());
    await scene.runtime.clock.advance(SEEN_MS + 1);
    expect(scene.status()?.routes).toMatchObject([{ kind: 'HTTPRoute', resolved: true }]);
    expect(messageOf(scene)).toBeUndefined();
  });

  it('is not believed of another namespace than that of the operator', async () => {
    const scene = await sceneWith(unresolved(), anchor('tenant'));
    expect(messageOf(scene)).toBeUndefined();
  });

  it('gives way to the reason of a route that does not resolve', async () => {
    const wrong = route('TCPRoute', 'default/web', { rules: [{ backendRefs: [meshBackend({ port: 1 })] }] });
    const scene = await sceneWith(withReport(wrong, 'BackendNotFound'), anchor());
    expect(scene.status()?.routes).toMatchObject([{ resolved: false }]);
    expect(messageOf(scene)).toMatch(/^PortNotFound: /);
  });
});

const NOT_SEEN =
  'traffic flows, but Envoy Gateway reports ResolvedRefs False/BackendNotFound though its MeshEndpoints exist: restart it if it started before the CRD of MeshEndpoints was served, as mesh-gateway doctor shows, such as by kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway; else let its watch include their namespaces';

/** What Envoy Gateway reports on anchors: that they attach to no listener. */
const reported = () => withReport(anchor(), 'RefNotPermitted');

describe('an anchor on which Envoy Gateway reports, and that has no effect', () => {
  it.each(['TLSRoute', 'TCPRoute'] as const)('is reported in the status of a %s after 30 s', async kind => {
    const scene = await EndpointsScene.start(tailnet);
    await scene.observe(web(kind), unresolved(kind), reported());
    await scene.runtime.clock.advance(SEEN_MS - 1000);
    expect(messageOf(scene)).toBeUndefined();
    await scene.runtime.clock.advance(1001);
    expect(scene.status()?.routes).toEqual([
      { kind, namespace: 'default', name: 'web', resolved: true, message: NOT_SEEN },
    ]);
  });

  it('is no longer reported once the route is resolved', async () => {
    const scene = await sceneWith(unresolved(), reported());
    expect(messageOf(scene)).toBe(NOT_SEEN);
    await scene.observe(withReport(route('TCPRoute', 'default/web')));
    expect(messageOf(scene)).toBeUndefined();
  });

  it('is what is left once Envoy Gateway sees the anchor', async () => {
    const scene = await sceneWith(unresolved(), anchor());
    expect(messageOf(scene)).toBe(HIDDEN);
    await scene.observe(reported());
    expect(messageOf(scene)).toBe(NOT_SEEN);
  });

  it.each([
    ['a MeshEndpoints that does not exist', meshBackend({ name: 'gone' })],
    ['a Service, which the operator does not read', { name: 'shop', port: 80 }],
  ])('is not reported for a route that also names %s', async (_what, other) => {
    const scene = await sceneWith(
      unresolved('TCPRoute', { rules: [{ backendRefs: [meshBackend(), other] }] }),
      reported(),
    );
    expect(messageOf(scene)).toBeUndefined();
  });

  it('is not believed of another namespace than that of the operator', async () => {
    const scene = await sceneWith(unresolved(), withReport(anchor('tenant'), 'RefNotPermitted'));
    expect(messageOf(scene)).toBeUndefined();
  });

  it('is reported 30 s after the last of what Envoy Gateway has to see was created', async () => {
    const scene = await sceneWith(unresolved(), reported());
    const newer = { creationTimestamp: '2026-01-15T12:00:30Z' };
    await scene.observe(
      withReport(named(route('TCPRoute', 'default/web'), 'default/web', newer), 'BackendNotFound'),
    );
    expect(messageOf(scene)).toBeUndefined();
    await scene.runtime.clock.advance(SEEN_MS);
    expect(messageOf(scene)).toBe(NOT_SEEN);
  });
});
