import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../src/api/conditions.ts';
import { SKIP_CLEANUP } from '../../../src/api/names.ts';
import { FINALIZER } from '../../../src/controllers/vip-services/finalizer.ts';
import { OWNERS, ownershipOf } from '../../../src/controllers/vip-services/owners.ts';
import { named } from '../../support/declared.ts';
import { meshTailnet } from '../../support/objects.ts';
import { INSTALLATION, publishing, startVipScene } from '../../support/controllers/vip-services/scene.ts';

const B = { kind: 'MeshEndpoints', namespace: 'default', name: 'b' } as const;
const LATER = { kind: 'MeshTailnet', namespace: '', name: 'later' } as const;

/** A service of a MeshTailnet beside an older one of another domain. */
async function startWithLater() {
  const scene = await startVipScene({ spec: { tailnet: 'other.ts.net' } });
  const spec = { ...scene.tailnet()?.spec, tailnet: 'example.ts.net' };
  await scene.put(named(meshTailnet(spec), 'later'));
  await scene.put(publishing('a', ['web']));
  await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
  return { ...scene, spec };
}

describe('VIP services', () => {
  it('are registered while a MeshEndpoints lists them, with their owner, and deleted afterwards', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => {
      expect(scene.entry('a')).toMatchObject({ status: 'Registered', reason: 'NotServed' });
    });
    const service = scene.service();
    expect(service).toMatchObject({ ports: ['tcp:443'], tags: ['tag:mesh'] });
    expect(scene.entry('a')?.vipAddress).toBe(service?.addrs[0]);
    expect(scene.entry('a')?.lastUpdated).toMatch(/^2026-01-15T12:/);
    expect(service && ownershipOf(service)).toMatchObject({
      is: 'owned',
      owners: [{ installation: INSTALLATION, object: 'default/a', strategy: 'shared' }],
    });
    expect(scene.condition('a')).toMatchObject({ status: 'False', reason: 'NotServed' });
    expect(scene.tailnet()?.metadata.finalizers).toContain(FINALIZER);

    await scene.put(publishing('a', ['svc:web', 'other']));
    await scene.until(() => expect(scene.entry('a', 'other')).toMatchObject({ status: 'Registered' }));
    expect(scene.entry('a', 'svc:web')).toMatchObject({ vipAddress: service?.addrs[0] });

    await scene.remove('a');
    await scene.until(
      () => expect(scene.tailnet()?.metadata.finalizers ?? []).not.toContain(FINALIZER),
      5000,
    );
    scene.api.audit();
    expect(await scene.metrics()).toContain(
      'service_coordinator_registrations_total{tailnet="example",result="deleted"} 2',
    );
  });

  it('are listed no more often because of objects that list names which others have', async () => {
    const scene = await startVipScene({ spec: { syncInterval: '10m' } });
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    await scene.clock.advance(60_000);
    const lists = () => scene.api.requests().filter(({ route }) => route === 'services.list').length;
    const before = lists();
    expect(before).toBeGreaterThan(0);
    for (let edit = 1; edit <= 10; edit++) {
      const services = edit % 2 === 0 ? ['web'] : ['web', 'svc:web'];
      await scene.put(publishing('b', services));
      await scene.until(
        () => expect(scene.memory.read.get(B)?.status?.vipServices).toHaveLength(services.length),
        1,
      );
      expect(scene.entry('b')).toMatchObject({ status: 'Conflict', reason: 'ListedByOther' });
    }
    expect(lists()).toBe(before);

    await scene.put(publishing('b', ['other']));
    await scene.until(() => expect(scene.entry('b', 'other')).toMatchObject({ status: 'Registered' }));
  });

  it('keep their address when their port changes', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    const { vipAddress } = scene.entry('a') ?? {};
    const vipServices = [{ name: 'web', port: 8443, targetEndpoint: 'web' }];
    await scene.put(publishing('a', [], { vipServices }));
    await scene.until(() => expect(scene.service()?.ports).toEqual(['tcp:8443']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered', vipAddress }));
  });

  it('are not registered in another tailnet, where the credentials are those of one', async () => {
    const scene = await startVipScene({ api: { domain: 'other.ts.net' } });
    scene.api.addDevice({ hostname: 'web' });
    await scene.until(() =>
      expect(findCondition(scene.tailnet()?.status?.conditions, 'Authenticated')?.status).toBe('False'),
    );
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.condition('a')).toMatchObject({ reason: 'NotAuthenticated' }));
    expect(scene.services()).toEqual([]);
  });

  it('are not touched if others created them, unless they are to be adopted', async () => {
    const scene = await startVipScene();
    scene.api.addService({
      name: 'svc:web',
      addrs: ['100.96.0.9', 'fd7a:115c:a1e0:ff::9'],
      ports: ['tcp:443'],
    });
    const before = scene.service();
    await scene.put(publishing('a', ['web']));
    await scene.until(() =>
      expect(scene.entry('a')).toMatchObject({ status: 'Conflict', reason: 'NotOwned' }),
    );
    expect(scene.service()).toEqual(before);
    expect(scene.events.join('\n')).toContain('Warning Conflict web: the tailnet has a service svc:web');

    await scene.put(publishing('a', ['web'], { autoRegister: false }));
    await scene.until(() =>
      expect(scene.entry('a')).toMatchObject({ status: 'Conflict', reason: 'NotAdoptable' }),
    );
    expect(scene.service()).toEqual(before);
    expect(scene.entry('a')?.message).toContain('add "web" to spec.adoptableServices of MeshTailnet');

    const tailnet = scene.tailnet();
    await scene.put({ ...tailnet, spec: { ...tailnet?.spec, adoptableServices: ['other', 'we*'] } });
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    expect(scene.service()).toMatchObject({ addrs: before?.addrs, ports: ['tcp:443'] });

    await scene.remove('a');
    await scene.until(() => expect(scene.service()?.annotations).not.toHaveProperty([OWNERS]), 5000);
    expect(scene.service()).toEqual(before);
  });

  it('stay with the object that has registered them, also where an older one lists them later', async () => {
    const scene = await startVipScene();
    // Of objects of the same second, the first by name counts as the oldest.
    await scene.put(publishing('a', ['other']));
    await scene.put(publishing('b', ['web']));
    await scene.until(() => expect(scene.entry('b')).toMatchObject({ status: 'Registered' }));
    await scene.put(publishing('a', ['other', 'web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ reason: 'ListedByOther' }));
    expect(scene.entry('b')).toMatchObject({ status: 'Registered' });
    expect(scene.service()?.annotations[OWNERS]).toContain('default/b');
    await scene.remove('b');
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
  });

  it('belong to the oldest object that lists them', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    // Of objects of the same second, the first by name counts as the oldest.
    await scene.put(publishing('b', ['svc:web']));
    await scene.until(() =>
      expect(scene.entry('b', 'svc:web')).toMatchObject({
        status: 'Conflict',
        reason: 'ListedByOther',
        message: expect.stringContaining('MeshEndpoints default/a lists service svc:web') as string,
      }),
    );
    await scene.remove('a');
    await scene.until(() => expect(scene.entry('b', 'svc:web')).toMatchObject({ status: 'Registered' }));
    expect(scene.services()).toEqual(['svc:web']);
  });

  it('show which devices serve them, and what approves a device', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    const host = { hostname: `meshd-example-0-${INSTALLATION}`, tags: ['tag:mesh'] };
    const { nodeId } = scene.api.addDevice(host);
    scene.api.advertise('svc:web', nodeId);
    await scene.until(() => {
      expect(scene.entry('a')).toMatchObject({
        status: 'Pending',
        reason: 'NotApproved',
        message: expect.stringContaining('{"autoApprovers":{"services":{"svc:web":["tag:mesh"]}}}') as string,
      });
    }, 10_000);
    scene.autoApprove('svc:web', 'tag:mesh');
    scene.api.advertise('svc:web', nodeId);
    await scene.until(() => {
      expect(scene.entry('a')).toMatchObject({ status: 'Registered', reason: 'Served' });
    }, 10_000);
    expect(scene.entry('a')?.owners).toMatchObject([{ object: 'default/a', hosts: 1 }]);
    expect(scene.condition('a')).toMatchObject({ status: 'True', reason: 'ServicesReady' });
  });

  it('have their hosts read every few seconds while their endpoint is healthy and none serves them', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    const end = scene.clock.now() + 120_000;
    await scene.until(() => expect(scene.clock.now()).toBeGreaterThan(end));
    expect(scene.api.countByRoute()['services.hosts']).toBeGreaterThan(5);
  });

  it('are removed before the MeshTailnet is', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    await scene.memory.author.remove({ kind: 'MeshTailnet', namespace: '', name: 'example' });
    await scene.until(() => {
      const message = 'it is not registered: the MeshTailnet is being deleted';
      expect(scene.entry('a')).toMatchObject({ status: 'Pending', reason: 'NotRegistered', message });
    });
    await scene.until(() => expect(scene.tailnet()).toBeUndefined(), 5000);
    scene.api.audit();
    expect(scene.services()).toEqual([]);
  });

  it.each([
    ['removes what is left of them', []],
    ['keeps those that are listed', ['svc:web']],
  ])('pass to an older MeshTailnet that takes over their domain, which %s', async (_, left) => {
    const scene = await startWithLater();
    await scene.put(named(meshTailnet(scene.spec), 'example'));
    if (left.length === 0) await scene.remove('a');
    await scene.memory.author.remove(LATER);
    await scene.until(() => {
      expect(scene.tailnet('later')).toBeUndefined();
      expect(scene.tailnet()?.metadata.finalizers ?? []).toEqual(left.map(() => FINALIZER));
    }, 5000);
    expect(scene.services()).toEqual(left);
  });

  it('keep their address when a younger MeshTailnet of their domain replaces one that is deleted', async () => {
    const scene = await startVipScene();
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    const { vipAddress } = scene.entry('a') ?? {};
    const example = scene.tailnet();
    await scene.put(named(meshTailnet({ ...example?.spec }), 'later'));
    if (example) await scene.memory.write.addFinalizer(example, 'example.com/held');
    await scene.memory.author.remove({ ...LATER, name: 'example' });
    const end = scene.clock.now() + 120_000;
    await scene.until(() => expect(scene.clock.now()).toBeGreaterThan(end), 5000);
    expect(scene.entry('a')).toMatchObject({ status: 'Registered', vipAddress });
    if (example) await scene.memory.write.removeFinalizer(example, 'example.com/held');
    await scene.until(() => expect(scene.tailnet()).toBeUndefined());
    await scene.until(() => expect(scene.clock.now()).toBeGreaterThan(end + 120_000), 5000);
    expect(scene.entry('a')).toMatchObject({ status: 'Registered', vipAddress });
    expect(scene.tailnet('later')?.metadata.finalizers).toEqual([FINALIZER]);
  });

  it('keep no MeshTailnet that skips their cleanup, even beside an older one that is being deleted', async () => {
    const scene = await startWithLater();
    const older = scene.tailnet();
    if (older) await scene.memory.write.addFinalizer(older, 'example.com/held');
    await scene.memory.author.remove({ ...LATER, name: 'example' });
    await scene.put(named(meshTailnet(scene.spec), 'example'));
    await scene.memory.author.remove(LATER);
    await scene.until(() => expect(scene.clock.now()).toBeGreaterThan(60_000), 5000);
    expect(scene.tailnet('later')?.metadata.finalizers).toEqual([FINALIZER]);
    await scene.put(named(meshTailnet(scene.spec), 'later', { annotations: { [SKIP_CLEANUP]: 'true' } }));
    await scene.until(() => expect(scene.tailnet('later')).toBeUndefined());
    expect(scene.services()).toEqual(['svc:web']);
  });

  it('are not supported by headscale', async () => {
    const scene = await startVipScene({ api: { dialect: 'headscale' } });
    await scene.put(publishing('a', ['web']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'NotSupported' }), 5000);
    expect(scene.condition('a')).toMatchObject({ status: 'False', reason: 'NotSupported' });
    expect(scene.tailnet()?.metadata.finalizers ?? []).toEqual([]);
  });

  it('need a scope, which the condition names', async () => {
    const scene = await startVipScene({ scopes: ['devices:core', 'auth_keys'] });
    await scene.put(publishing('a', ['web']));
    await scene.until(() => {
      expect(scene.condition('a')).toMatchObject({ status: 'False', reason: 'ScopeMissing' });
    }, 5000);
    expect(scene.condition('a')?.message).toContain('the scope services');
    expect(scene.services()).toEqual([]);
  });
});
