import { describe, expect, it } from 'vitest';
import { ownersOf, withOwners } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../support/objects.ts';
import { INSTALLATION, publishing, startVipScene } from '../../support/controllers/vip-services/scene.ts';

type Scene = Awaited<ReturnType<typeof startVipScene>>;

const LEGACY = { allowedTags: ['tag:db'] };
const LINE = 'add tag:db to spec.serviceTags of MeshTailnet example';

/** A MeshEndpoints of namespace default that lists the service web with tags. */
function tagged(name: string, tags: readonly string[], more: object = {}): object {
  const vipServices = [{ name: 'web', port: 443, targetEndpoint: 'web', tags }];
  const spec = { endpoints: [endpoint()], serviceDiscovery: { vipServices }, ...more };
  return named(meshEndpoints(spec), `default/${name}`);
}

/** svc:web, registered by a version that had allowedTags alone; of this installation unless another is given. */
function addRegistered(scene: Scene, more: Partial<Owner> = {}): void {
  scene.api.state.policy = { tagOwners: { 'tag:db': ['tag:mesh'] } };
  const owner: Owner = {
    ...{ installation: INSTALLATION, cluster: 'unknown', object: 'default/a', strategy: 'shared' },
    ...{
      ports: ['tcp:443'],
      tags: ['tag:db'],
      shareWith: [],
      heartbeat: new Date(Date.UTC(2026, 0, 15, 12)),
    },
    ...more,
  };
  const annotations = withOwners({}, [owner], false);
  const addrs = ['100.96.0.9', 'fd7a:115c:a1e0:ff::9'];
  scene.api.addService({ name: 'svc:web', addrs, ports: ['tcp:443'], tags: ['tag:db'], annotations });
}

const REFUSED = {
  ...{ status: 'Failed', reason: 'TagNotAllowed' },
  message: expect.stringContaining(LINE) as string,
};

describe('a tag that devices may be discovered by', () => {
  it('is not for a service that was not registered with it, with the line that allows it', async () => {
    const scene = await startVipScene({ spec: LEGACY });
    await scene.put(tagged('a', ['tag:db']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject(REFUSED));
    expect(scene.services()).toEqual([]);

    await scene.put(tagged('a', ['tag:mesh']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    await scene.put(tagged('a', ['tag:mesh', 'tag:db']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject(REFUSED));
    expect(scene.service()?.tags).toEqual(['tag:mesh']);
  });

  it('is not for a service whose status has it registered, nor for one that another installation has with it', async () => {
    const scene = await startVipScene({ spec: LEGACY });
    addRegistered(scene, { installation: '99999999' });
    const status = { vipServices: [{ name: 'web', status: 'Registered', reason: 'Served' }] };
    await scene.put({ ...tagged('a', ['tag:db']), status });
    await scene.until(() => expect(scene.entry('a')).toMatchObject(REFUSED));
    expect(ownersOf(scene.service())).toMatchObject([{ installation: '99999999' }]);
  });

  it('stays in this version on a service that has it, with a Warning until the MeshTailnet has it', async () => {
    const scene = await startVipScene({ spec: LEGACY });
    addRegistered(scene);
    await scene.put(tagged('a', ['tag:db']));
    const { nodeId } = scene.api.addDevice({
      hostname: `meshd-example-0-${INSTALLATION}`,
      tags: ['tag:mesh'],
    });
    scene.autoApprove('svc:web', 'tag:mesh');
    scene.api.advertise('svc:web', nodeId);
    const message = `a later version ends this: ${LINE}`;
    await scene.until(
      () => expect(scene.condition('a')).toMatchObject({ status: 'True', reason: 'ServicesReady' }),
      10_000,
    );
    expect(scene.condition('a')?.message).toContain(message);
    expect(scene.entry('a')?.warnings).toEqual([{ reason: 'TagNotAllowed', message }]);
    const events = scene.events.filter(event => event.includes(LINE));
    expect(events).toEqual([`Warning TagNotAllowed VIP service web: ${message}`]);
    expect(scene.service()?.tags).toEqual(['tag:db']);

    const spec = { ...scene.tailnet()?.spec, serviceTags: ['tag:db'] };
    await scene.put(named(meshTailnet(spec), 'example'));
    await scene.until(() => expect(scene.entry('a')).not.toHaveProperty('warnings'), 10_000);
    expect(scene.condition('a')).toMatchObject({ status: 'True', reason: 'ServicesReady' });
  });

  it.each([
    ['lists it', ['tag:db'], {}],
    ['is paused', ['tag:mesh'], { paused: true }],
  ])('does not pass with the name to another object, which %s', async (_, tags, more) => {
    const scene = await startVipScene({ spec: LEGACY });
    addRegistered(scene);
    await scene.put(tagged('a', ['tag:db']));
    await scene.until(() => expect(scene.entry('a')).toMatchObject({ status: 'Registered' }));
    await scene.put(tagged('b', tags));
    await scene.until(() => expect(scene.entry('b')).toMatchObject({ reason: 'ListedByOther' }));
    await scene.put(tagged('b', tags, more));
    // One that it lists no more passes at once.
    await scene.put(publishing('a', ['other']));
    await scene.until(() => expect(scene.service()?.tags ?? []).not.toContain('tag:db'), 10_000);
  });
});
