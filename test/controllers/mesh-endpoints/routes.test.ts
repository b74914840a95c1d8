import { describe, expect, it } from 'vitest';
import type { RouteKind } from '../../../src/api/key.ts';
import { meshBackend, named, openGateway, route } from '../../support/declared.ts';
import { confirmed, EndpointsScene } from '../../support/controllers/mesh-endpoints/scene.ts';
import { endpoint, meshEndpoints, meshGateway, meshTailnet } from '../../support/objects.ts';
import { grantObject, namespaceObject } from '../../support/traffic/objects.ts';

const EXTERNAL = { pool: { mode: 'External', addresses: ['10.0.0.1:1055'] } };
const tailnet = named(meshTailnet(EXTERNAL), 'one');
const web = (fields: object = {}, name = 'default/web') =>
  named(meshEndpoints({ endpoints: [endpoint({ ...fields })] }), name);
const to = (name: string, ...backendRefs: readonly object[]) =>
  route('HTTPRoute', name, { rules: [{ backendRefs }] });
const toWeb = route('HTTPRoute', 'default/web');

const resolvedOf = (scene: EndpointsScene, name = 'web') =>
  scene.status(name)?.conditions?.find(({ type }) => type === 'RoutesResolved');

const WEB = { kind: 'HTTPRoute', namespace: 'default', name: 'web', resolved: true };

describe('the condition RoutesResolved', () => {
  it('is Unknown while no route names the object', async () => {
    const other = to('default/other', meshBackend({ name: 'other' }));
    const scene = await EndpointsScene.start(tailnet, web(), other);
    expect(resolvedOf(scene)).toEqual({
      type: 'RoutesResolved',
      status: 'Unknown',
      reason: 'NoRoutes',
      message:
        'no route that may refer to this object has it among its backendRefs; one of another namespace needs a ReferenceGrant',
      observedGeneration: 1,
      lastTransitionTime: '2026-01-15T12:00:00Z',
    });
    expect(scene.status()).not.toHaveProperty('routes');
  });

  it('is True while every route can use the object, whatever the others name', async () => {
    const grpc = route('GRPCRoute', 'default/grpc', { rules: [{ backendRefs: [meshBackend({ port: 1 })] }] });
    const other = to('default/other', meshBackend({ name: 'other', port: 9 }));
    const scene = await EndpointsScene.start(tailnet, web(), toWeb, other, web({}, 'default/other'));
    expect(resolvedOf(scene)).toMatchObject({ status: 'True', reason: 'Resolved' });
    expect(scene.status()?.routes).toEqual([WEB]);
    await scene.put(grpc);
    expect(scene.status()?.routes).toMatchObject([{ kind: 'GRPCRoute', resolved: false }, WEB]);
    expect(resolvedOf(scene)).toMatchObject({
      status: 'False',
      reason: 'PortNotFound',
      message:
        'GRPCRoute default/grpc: PortNotFound: spec.rules[0].backendRefs[0]: port 1 is not a port of MeshEndpoints default/web: use one that it has (it has 8080)',
    });
    await scene.remove('GRPCRoute/default/grpc');
    expect(resolvedOf(scene)?.status).toBe('True');
  });

  it.each(['HTTPRoute', 'GRPCRoute'] as const)('is False while a rule of a %s mirrors to it', async kind => {
    const mirror = { type: 'RequestMirror', requestMirror: { backendRef: meshBackend(), percent: 10 } };
    const mirrored = route(kind, 'default/mirror', {
      rules: [{ backendRefs: [{ name: 'shop', port: 80 }], filters: [mirror] }],
    });
    const scene = await EndpointsScene.start(tailnet, web(), mirrored);
    expect(resolvedOf(scene)).toMatchObject({
      status: 'False',
      reason: 'NotSupported',
      message: expect.stringMatching(
        /spec\.rules\[0\]\.filters: Envoy Gateway answers .* with 500.*: mirror to a Service/,
      ) as string,
    });
  });

  it.each<readonly [RouteKind, string]>([
    ['HTTPRoute', 'HTTP'],
    ['GRPCRoute', 'gRPC'],
    ['TLSRoute', 'TLS'],
    ['TCPRoute', 'TCP'],
  ])('counts each %s', async (kind, protocol) => {
    const scene = await EndpointsScene.start(tailnet, web({ protocol }), route(kind, 'default/web'));
    expect(scene.status()?.routes).toEqual([{ ...WEB, kind }]);
    await scene.put(web({ protocol: 'UDP' }));
    expect(resolvedOf(scene)).toMatchObject({ status: 'False', reason: 'ProtocolMismatch' });
  });

  it('keeps the time of its last transition while only reason and message change', async () => {
    const scene = await EndpointsScene.start(tailnet, web(), to('default/web', meshBackend({ port: 1 })));
    const { lastTransitionTime } = resolvedOf(scene) ?? {};
    await scene.runtime.clock.advance(60_000);
    await scene.put(to('default/web', meshBackend({ port: undefined })));
    expect(resolvedOf(scene)).toMatchObject({ reason: 'PortMissing', lastTransitionTime });
    await scene.put(toWeb);
    expect(resolvedOf(scene)?.lastTransitionTime).not.toBe(lastTransitionTime);
  });

  it('leaves conditions of others as they are', async () => {
    const scene = await EndpointsScene.start(tailnet, web(), toWeb);
    const found = { type: 'Reviewed', status: 'True', reason: 'Approved', message: '' } as const;
    const condition = { ...found, lastTransitionTime: '2026-01-01T00:00:00Z' };
    await scene.write({ conditions: [condition] });
    expect(scene.status()?.conditions).toContainEqual(condition);
    expect(resolvedOf(scene)?.status).toBe('True');
    expect(scene.status()).toMatchObject({ observedGeneration: 1 });
  });
});

describe('status.routes', () => {
  it('has every reason of a route once, cut to what a status may have', async () => {
    const ports = Array.from({ length: 12 }, (_, at) => meshBackend({ port: at + 1 }));
    const scene = await EndpointsScene.start(tailnet, web(), to('default/web', ...ports));
    const [{ message = '' } = {}] = scene.status()?.routes ?? [];
    expect(message).toHaveLength(1024);
    expect(message).toMatch(/^PortNotFound: .*; PortNotFound: .*\.\.\.$/);
  });

  it('has 256 routes sorted by kind, namespace and name; the condition counts all', async () => {
    const names = Array.from({ length: 300 }, (_, at) => `default/r${String(at).padStart(3, '0')}`);
    const refs = (at: number) => meshBackend(at >= 298 ? { port: 1 } : {});
    const routes = names.map((name, at) => to(name, refs(at)));
    const scene = await EndpointsScene.start(tailnet, web(), ...routes.reverse());
    expect(scene.status()?.routes?.map(({ name }) => `default/${name}`)).toEqual(names.slice(0, 256));
    expect(resolvedOf(scene)?.message).toMatch(
      /^HTTPRoute default\/r298: .* \(and 1 more of 300 routes: see status\.routes\)$/,
    );
  });

  it('counts Services and Backends as found, which the operator has no right to read', async () => {
    const mixed = to('default/web', meshBackend(), { name: 'shop', port: 80 });
    const scene = await EndpointsScene.start(tailnet, web(), mixed);
    expect(scene.status()?.routes).toEqual([WEB]);
  });

  it('does so where what it uses depends on its own status', async () => {
    const fields = { externalTarget: 'shop.example.com:8443' };
    const mixed = to('default/web', meshBackend(), { name: 'shop', port: 80 });
    const scene = await EndpointsScene.start(tailnet, web(fields), mixed);
    expect(scene.status()?.routes).toMatchObject([{ name: 'web' }]);
    expect(resolvedOf(scene)?.reason).toBe('ExternalTargetNotResolved');
  });
});

/** Each change resolves a route that did not resolve, and is found without a resync. */
const FIXES: readonly {
  readonly it: string;
  readonly world: readonly object[];
  readonly fix: object;
  readonly reason: string;
}[] = [
  { it: 'the object', world: [tailnet, web({ port: 1 }), toWeb], fix: web(), reason: 'PortNotFound' },
  {
    it: 'a route',
    world: [tailnet, web(), to('default/web', meshBackend({ port: 1 }))],
    fix: toWeb,
    reason: 'PortNotFound',
  },
  { it: 'a MeshTailnet', world: [web(), toWeb], fix: tailnet, reason: 'TailnetNotFound' },
  {
    it: 'the namespace of the object',
    world: [
      named(
        meshTailnet({
          ...EXTERNAL,
          allowedNamespaces: { from: 'Selector', selector: { matchLabels: { mesh: 'yes' } } },
        }),
        'one',
      ),
      web(),
      toWeb,
    ],
    fix: namespaceObject('default', { mesh: 'yes' }),
    reason: 'NamespaceNotAllowed',
  },
  {
    it: 'the tailnet of another MeshEndpoints of the rule',
    world: [
      tailnet,
      named(meshTailnet({ ...EXTERNAL, tailnet: 'other.ts.net' }), 'other'),
      web(),
      named(meshEndpoints({ tailnet: 'other.ts.net', endpoints: [endpoint()] }), 'default/other'),
      to('default/web', meshBackend(), meshBackend({ name: 'other' })),
    ],
    fix: named(meshTailnet({ ...EXTERNAL, tailnet: 'third.ts.net' }), 'other'),
    reason: 'DuplicateAddress',
  },
];

describe('a route that does not resolve', () => {
  it.each(FIXES)('is resolved by a change of $it', async ({ world, fix, reason }) => {
    const scene = await EndpointsScene.start(...world);
    expect(resolvedOf(scene)).toMatchObject({ status: 'False', reason });
    await scene.put(fix);
    expect(resolvedOf(scene)).toMatchObject({ status: 'True', reason: 'Resolved' });
  });

  it('is resolved by the data path of its Gateway, within a resync', async () => {
    const names = named(meshTailnet({ pool: { mode: 'External', addresses: ['proxy.test:1055'] } }), 'one');
    const scene = await EndpointsScene.start(openGateway('default/public'), names, web(), toWeb);
    expect(resolvedOf(scene)?.reason).toBe('ProxyNotAnAddress');
    await scene.put(named(meshGateway({ dataPath: { mode: 'Direct' } }), 'default/direct'));
    await scene.runtime.clock.advance(30_000);
    expect(resolvedOf(scene)?.status).toBe('True');
  });

  it('is forgotten by the object that it named before', async () => {
    const scene = await EndpointsScene.start(tailnet, web(), to('default/web', meshBackend({ port: 1 })));
    await scene.put(to('default/web', meshBackend({ name: 'other' })));
    expect(resolvedOf(scene)?.reason).toBe('NoRoutes');
    expect(scene.status()).not.toHaveProperty('routes');
  });
});

describe('a route of another namespace without a ReferenceGrant', () => {
  const ofOthers = (name: string, ...refs: readonly object[]) =>
    route('HTTPRoute', name, {
      parentRefs: [{ name: 'public' }],
      rules: [{ backendRefs: refs.map(ref => meshBackend({ namespace: 'default', ...ref })) }],
    });

  it('changes nothing in the status of the object, so that no namespace can write there', async () => {
    const scene = await EndpointsScene.start(tailnet, web(), toWeb, openGateway('default/public'));
    const [before, { writes }] = [scene.status(), scene];
    expect(before?.routes).toEqual([WEB]);
    await scene.put(openGateway('far/public'));
    await scene.put(ofOthers('far/web', {}));
    await scene.put(ofOthers('far/weightless', { weight: 0 }));
    expect(scene.status()).toEqual(before);
    expect(scene.writes).toBe(writes);
  });

  it('counts once there is one', async () => {
    const scene = await EndpointsScene.start(tailnet, web(), ofOthers('far/web', {}));
    expect(resolvedOf(scene)).toMatchObject({ status: 'Unknown', reason: 'NoRoutes' });
    await scene.put(grantObject('default', { from: { namespace: 'far' } }));
    expect(resolvedOf(scene)).toMatchObject({ status: 'True', reason: 'Resolved' });
    expect(scene.status()?.routes).toEqual([{ ...WEB, namespace: 'far' }]);
  });
});

describe('the Events of MeshEndpoints', () => {
  const summary = (scene: EndpointsScene) =>
    scene.events.splice(0).map(({ type, reason, regarding }) => `${type} ${reason} ${regarding.name}`);

  it('are one for each transition, and none for routes that resolve from the start', async () => {
    const scene = await EndpointsScene.start(tailnet, web(), toWeb);
    expect(summary(scene)).toEqual([]);
    await scene.put(to('default/web', meshBackend({ port: 1 })));
    expect(scene.events[0]).toMatchObject({
      regarding: { kind: 'MeshEndpoints', namespace: 'default', name: 'web' },
      action: 'Resolve',
      note: resolvedOf(scene)?.message,
    });
    await scene.put(to('default/web', meshBackend({ port: 2 })));
    expect(summary(scene)).toEqual(['Warning PortNotFound web']);
    await scene.restart();
    expect(summary(scene)).toEqual([]);
    await scene.put(toWeb);
    expect(summary(scene)).toEqual(['Normal Resolved web']);
    await scene.remove('HTTPRoute/default/web');
    expect(summary(scene)).toEqual([]);
  });
});

describe('the status of objects that share a route', () => {
  it('is written once for each, by one reconcile, however many they are', async () => {
    const names = Array.from({ length: 16 }, (_, at) => `web-${at}`);
    const objects = names.map((name, at) => web({ meshIP: `100.64.0.${at + 1}` }, `default/${name}`));
    const shared = to('default/web', ...names.map(name => meshBackend({ name })));
    const scene = await EndpointsScene.start(tailnet, shared, ...objects);
    expect([scene.writes, resolvedOf(scene, 'web-15')?.status]).toEqual([16, 'True']);
    expect(await scene.reconciles()).toBe(16);
    await scene.runtime.clock.advance(600_000);
    expect(scene.writes).toBe(16);
  });

  it.each<[string, object, (scene: EndpointsScene) => unknown, boolean]>([
    ['health', { healthCheck: { enabled: true } }, scene => scene.decide('web', 'connection refused'), false],
    [
      'addresses',
      { externalTarget: 'shop.example.com:8443' },
      scene => scene.resolve('shop.example.com', '10.1.0.1'),
      true,
    ],
  ])('has $0, which decides what routes do not use: $3', async (_what, fields, change, isAffected) => {
    const scene = await EndpointsScene.start(tailnet, web(fields), toWeb);
    const { unused } = scene.values;
    const affected: string[] = [];
    unused.read('HTTPRoute/default/web');
    unused.watch('HTTPRoute/default/web', { invalidated: () => affected.push('web') });
    const { writes } = scene;
    await change(scene);
    await scene.runtime.clock.advance(60_000);
    expect([scene.writes > writes, affected.length > 0]).toEqual([true, isAffected]);
  });

  it('has a UDP route that resolves in the write that has the relay port', async () => {
    const dns = web({ protocol: 'UDP', port: 53 });
    const udp = route('UDPRoute', 'default/dns', { rules: [{ backendRefs: [meshBackend({ port: 53 })] }] });
    const scene = await EndpointsScene.start(named(meshTailnet(), 'one'), dns, udp);
    expect(resolvedOf(scene)).toMatchObject({ status: 'False' });
    const { writes } = scene;
    await scene.publish('one', confirmed({ '100.64.0.1:53': 20_000 }));
    expect([scene.status()?.endpoints?.[0]?.relayPort, scene.writes]).toEqual([20_000, writes + 1]);
  });
});
