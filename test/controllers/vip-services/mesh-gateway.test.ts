import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../src/api/conditions.ts';
import { OWNERS, ownershipOf, withOwners } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';
import { INSTALLATION, publishing, startVipScene } from '../../support/controllers/vip-services/scene.ts';
import { gatewayObject, meshBackend, named, route } from '../../support/declared.ts';
import { meshGateway } from '../../support/objects.ts';
import { grantObject } from '../../support/traffic/objects.ts';

type Scene = Awaited<ReturnType<typeof startVipScene>>;

const coordinated = (serviceCoordination: object, name = 'default/edge') =>
  named(meshGateway({ serviceCoordination }), name);

/** The Gateway that `coordinated` targets, in a namespace. */
const gateway = (name: string) =>
  gatewayObject('Gateway', name, {
    gatewayClassName: 'mesh',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  });

/** An entry of another installation. */
const THERE: Owner = {
  ...{ installation: 'ffffffff', cluster: 'there', object: 'default/web', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], heartbeat: new Date('2026-01-15T12:00:00Z') },
  shareWith: [INSTALLATION],
};

function addSharedService(scene: Scene, owner: Partial<Owner> = {}): void {
  const addrs = ['100.96.0.9', 'fd7a:115c:a1e0:ff::9'];
  const annotations = withOwners({}, [{ ...THERE, ...owner }], false);
  scene.api.addService({ name: 'svc:web', addrs, ports: ['tcp:443'], tags: ['tag:mesh'], annotations });
}

function ownersOf(scene: Scene): readonly Owner[] {
  const service = scene.service();
  const ownership = service && ownershipOf(service);
  return ownership?.is === 'owned' ? ownership.owners : [];
}

describe('serviceCoordination of a MeshGateway', () => {
  it('decides how the services of its namespace are shared, and under which name', async () => {
    const scene = await startVipScene();
    await scene.put(coordinated({ strategy: 'isolated', clusterID: 'berlin' }));
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    expect(ownersOf(scene)).toMatchObject([{ cluster: 'berlin', strategy: 'isolated' }]);

    await scene.memory.author.remove({ kind: 'MeshGateway', namespace: 'default', name: 'edge' });
    await scene.until(() =>
      expect(ownersOf(scene)).toMatchObject([{ cluster: 'unknown', strategy: 'shared' }]),
    );
  });

  it('makes a service of another installation a conflict with the strategy isolated', async () => {
    const scene = await startVipScene();
    addSharedService(scene);
    const before = scene.service();
    await scene.put(coordinated({ strategy: 'isolated' }));
    await scene.put(publishing('a', ['web']));
    await scene.until(() =>
      expect(scene.entry('a')).toMatchObject({
        ...{ status: 'Conflict', reason: 'OwnedByOther' },
        message: expect.stringContaining('MeshEndpoints default/web of cluster there') as string,
      }),
    );
    expect(scene.service()).toEqual(before);

    await scene.put(coordinated({ strategy: 'shared' }));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    expect(ownersOf(scene).map(({ installation }) => installation)).toEqual(['ffffffff', INSTALLATION]);
  });

  it('registers nothing while it is not enabled, and keeps what is registered', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    await scene.put(coordinated({ enabled: false }));
    await scene.put(publishing('a', ['web', 'other']));
    await scene.until(() =>
      expect(scene.entry('a', 'other')).toMatchObject({
        ...{ status: 'Pending', reason: 'NotRegistered' },
        message: 'it is not registered: MeshGateway default/edge has serviceCoordination.enabled false',
      }),
    );
    expect(scene.entry('a')).toMatchObject({ status: 'Registered' });
    const { heartbeat } = ownersOf(scene)[0] ?? {};
    await scene.until(() => expect(ownersOf(scene)[0]?.heartbeat).not.toEqual(heartbeat), 60_000);
    expect(scene.services()).toEqual(['svc:web']);
  });

  it('sets how often the entry is renewed, and when that of others is stale', async () => {
    const scene = await startVipScene();
    addSharedService(scene, { heartbeat: new Date('2026-01-15T11:20:00Z') });
    await scene.put(coordinated({ heartbeatInterval: '10m', staleThreshold: '1h' }));
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(ownersOf(scene)).toHaveLength(2));
    const [, own] = ownersOf(scene);
    const minutesTo = (time: Date | undefined) =>
      ((time?.getTime() ?? 0) - (own?.heartbeat.getTime() ?? 0)) / 60_000;
    await scene.until(() => expect(minutesTo(ownersOf(scene)[1]?.heartbeat)).toBeGreaterThan(0), 60_000);
    expect(minutesTo(ownersOf(scene)[1]?.heartbeat)).toBeGreaterThanOrEqual(10);
    await scene.until(() => expect(ownersOf(scene)).toHaveLength(1), 60_000);
    expect(scene.clock.now()).toBeGreaterThan(20 * 60_000);
  });

  it('is that of the Gateway whose routes use the MeshEndpoints, before that of its namespace', async () => {
    const scene = await startVipScene();
    await scene.put(coordinated({ clusterID: 'of-namespace' }, 'team/a'));
    await scene.put(coordinated({ clusterID: 'of-gateway' }));
    await scene.put(gateway('public'));
    await scene.put(named(publishing('x', ['web']), 'team/x'));
    await scene.until(() => expect(ownersOf(scene)).toMatchObject([{ cluster: 'of-namespace' }]));
    const rules = [{ backendRefs: [meshBackend({ name: 'x' })] }];
    const parentRefs = [{ name: 'public', namespace: 'default' }];
    await scene.put(
      gatewayObject('Gateway', 'public', {
        gatewayClassName: 'mesh',
        listeners: [
          { name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'All' } } },
        ],
      }),
    );
    await scene.put(route('HTTPRoute', 'team/x', { parentRefs, rules }));
    await scene.until(() => expect(ownersOf(scene)).toMatchObject([{ cluster: 'of-gateway' }]));
    await scene.until(() => expect(scene.gateway('edge')?.services).toMatchObject([{ object: 'team/x' }]));
    expect(scene.gateway('a', 'team')?.services).toBeUndefined();
  });
});

describe('a MeshGateway of another namespace', () => {
  it('decides nothing where only its own routes use the MeshEndpoints, by a ReferenceGrant', async () => {
    const scene = await startVipScene();
    await scene.put(coordinated({ strategy: 'isolated', clusterID: 'of-others' }, 'far/edge'));
    await scene.put(gateway('far/public'));
    const rules = [{ backendRefs: [meshBackend({ name: 'a', namespace: 'default' })] }];
    await scene.put(route('HTTPRoute', 'far/x', { parentRefs: [{ name: 'public' }], rules }));
    await scene.put(grantObject('default', { from: { namespace: 'far' } }));
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    expect(ownersOf(scene)).toMatchObject([{ cluster: 'unknown', strategy: 'shared' }]);

    await scene.put(coordinated({ clusterID: 'of-namespace' }, 'default/own'));
    await scene.until(() => expect(ownersOf(scene)).toMatchObject([{ cluster: 'of-namespace' }]));
    expect(scene.gateway('edge', 'far')?.services).toBeUndefined();
  });
});

describe('the tags of a service', () => {
  const tagged = (...tags: string[]) =>
    publishing('a', [], { vipServices: [{ name: 'web', port: 443, targetEndpoint: 'web', tags }] });

  it.each([
    [
      'are not of the MeshTailnet',
      {},
      'tag:db',
      'MeshTailnet example has tag:db neither in spec.tags nor in',
    ],
    [
      'are not allowed by the MeshGateway',
      { allowedTags: ['tag:mesh'] },
      'tag:web',
      'MeshGateway default/edge',
    ],
    ['are denied by the MeshGateway', { deniedTags: ['tag:web'] }, 'tag:web', 'does not allow tag:web'],
  ])('are refused if they %s, and an existing registration stays', async (_, access, tag, message) => {
    const scene = await startVipScene({ spec: { serviceTags: ['tag:web'] } });
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    await scene.put(named(meshGateway({ access }), 'default/edge'));
    await scene.put(tagged(tag));
    await scene.until(() =>
      expect(scene.entry('a')).toMatchObject({
        ...{ status: 'Failed', reason: 'TagNotAllowed' },
        message: expect.stringContaining(message) as string,
      }),
    );
    expect(scene.service()?.tags).toEqual(['tag:mesh']);
  });

  it('are those that it lists, where MeshTailnet and MeshGateway allow them', async () => {
    const scene = await startVipScene({ spec: { serviceTags: ['tag:web'] } });
    scene.api.state.policy = { tagOwners: { 'tag:web': ['tag:mesh'] } };
    await scene.put(named(meshGateway({ access: { allowedTags: ['tag:web'] } }), 'default/edge'));
    await scene.put(tagged('tag:web'));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    expect(scene.service()?.tags).toEqual(['tag:web']);
  });
});

describe('the status of a MeshGateway', () => {
  it('has its services, with their owners and hosts by cluster', async () => {
    const scene = await startVipScene();
    addSharedService(scene);
    await scene.put(coordinated({ clusterID: 'here' }));
    await scene.put(publishing('a', ['web', 'other'], { autoRegister: true }));
    await scene.until(() => expect(scene.gateway('edge')?.services).toHaveLength(2));
    const host = { hostname: `meshd-example-0-${INSTALLATION}`, tags: ['tag:mesh'] };
    const { nodeId } = scene.api.addDevice(host);
    scene.autoApprove('svc:web', 'tag:mesh');
    scene.api.advertise('svc:web', nodeId);
    await scene.until(() => {
      expect(scene.gateway('edge')?.services).toMatchObject([
        { name: 'other', object: 'default/a', state: 'Registered', owner: { cluster: 'here', hosts: 0 } },
        {
          ...{ name: 'web', state: 'Registered', vipAddress: '100.96.0.9' },
          owner: { cluster: 'there', object: 'default/web', hosts: 0 },
          consumers: [{ cluster: 'here', object: 'default/a', hosts: 1 }],
        },
      ]);
    }, 10_000);
    expect(scene.service()?.annotations).toHaveProperty([OWNERS]);
  });

  it('has the condition ServicesReady', async () => {
    const scene = await startVipScene();
    const condition = () => findCondition(scene.gateway('edge')?.conditions, 'ServicesReady');
    await scene.put(coordinated({}));
    await scene.until(() => expect(condition()).toMatchObject({ status: 'Unknown', reason: 'NoServices' }));
    await scene.put(publishing('a', ['web']));
    await scene.until(() => {
      expect(condition()).toMatchObject({ status: 'False', reason: 'ServicesNotReady' });
      expect(condition()?.message).toMatch(/^MeshEndpoints default\/a: VIP services .* \(NotServed\); its/);
    });
    const host = { hostname: `meshd-example-0-${INSTALLATION}`, tags: ['tag:mesh'] };
    const { nodeId } = scene.api.addDevice(host);
    scene.autoApprove('svc:web', 'tag:mesh');
    scene.api.advertise('svc:web', nodeId);
    await scene.until(
      () => expect(condition()).toMatchObject({ status: 'True', reason: 'ServicesReady' }),
      10_000,
    );
  });
});
