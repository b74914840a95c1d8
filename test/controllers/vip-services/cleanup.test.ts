import { describe, expect, it } from 'vitest';
import { FAULTS } from '../../../lab/control-api/faults.ts';
import { API_VERSION } from '../../../src/api/generated/kinds.ts';
import { FORCE_CLEANUP } from '../../../src/api/names.ts';
import { FINALIZER } from '../../../src/controllers/vip-services/finalizer.ts';
import { ownershipOf, withOwners } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';
import { startVipScene } from '../../support/controllers/vip-services/scene.ts';
import { named } from '../../support/declared.ts';
import { meshGateway } from '../../support/objects.ts';

type Scene = Awaited<ReturnType<typeof startVipScene>>;

const ASKING = named(meshGateway(), 'default/edge', { annotations: { [FORCE_CLEANUP]: 'true' } });

/** Entries of other installations: one that is stale, and one that is not. */
const STALE: Owner = {
  ...{ installation: 'eeeeeeee', cluster: 'gone', object: 'default/web', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], heartbeat: new Date('2026-01-15T11:20:00Z') },
};
const FRESH: Owner = {
  ...{ ...STALE, installation: 'ffffffff', cluster: 'there' },
  heartbeat: new Date('2026-01-15T12:00:00Z'),
};

function addService(scene: Scene, name: string, owners: readonly Owner[] | 'of someone else'): void {
  const annotations = typeof owners === 'string' ? {} : withOwners({}, owners, false);
  const host = scene.services().length + 1;
  const addrs = [`100.96.0.${host}`, `fd7a:115c:a1e0:ff::${host}`];
  scene.api.addService({ name, addrs, ports: ['tcp:443'], tags: ['tag:mesh'], annotations });
}

/** The clusters among the owners of a service. */
function clustersOf(scene: Scene, name: string): readonly string[] {
  const service = scene.service(name);
  const ownership = service && ownershipOf(service);
  return ownership?.is === 'owned' ? ownership.owners.map(({ cluster }) => cluster) : [];
}

/** Asks for a cleanup, and waits until it is done. */
async function cleanUp(scene: Scene) {
  const before = scene.events.length;
  await scene.put(ASKING);
  await scene.until(() => {
    const ref = { kind: 'MeshGateway', namespace: 'default', name: 'edge' } as const;
    expect(scene.memory.read.get(ref)?.metadata.annotations ?? {}).toEqual({});
  });
  const events = scene.events.slice(before).filter(event => event.includes('ServicesCleanedUp'));
  return { ...scene.gateway('edge')?.lastCleanup, events };
}

describe('the annotation force-cleanup of a MeshGateway', () => {
  it('removes stale registrations, deletes services without others, reports both and goes away', async () => {
    const scene = await startVipScene();
    addService(scene, 'svc:dead', [STALE]);
    addService(scene, 'svc:shared', [STALE, FRESH]);
    addService(scene, 'svc:alive', [FRESH]);
    addService(scene, 'svc:foreign', 'of someone else');
    const message =
      '2 stale registrations removed; deleted in about a minute, unless a device serves them: svc:dead';
    expect(await cleanUp(scene)).toMatchObject({
      ...{ registrations: 2, services: 1, message },
      events: [`Normal ServicesCleanedUp ${message}`],
    });
    expect(clustersOf(scene, 'svc:shared')).toEqual(['there']);
    await scene.until(() => expect(scene.services()).not.toContain('svc:dead'), 5000);
    expect(scene.services().toSorted()).toEqual(['svc:alive', 'svc:foreign', 'svc:shared']);
    await scene.until(
      () => expect(scene.tailnet()?.metadata.finalizers ?? []).not.toContain(FINALIZER),
      5000,
    );

    const again = { registrations: 0, services: 0, message: 'no stale registration found' };
    expect(await cleanUp(scene)).toMatchObject(again);
    expect(await cleanUp(scene)).toMatchObject(again);
  });

  it('removes a registration that is far in the future, which a clock that was ahead has left', async () => {
    const scene = await startVipScene();
    addService(scene, 'svc:ahead', [{ ...STALE, heartbeat: new Date('2027-01-15T12:00:00Z') }]);
    addService(scene, 'svc:alive', [FRESH]);
    expect(await cleanUp(scene)).toMatchObject({ registrations: 1, services: 1 });
    await scene.until(() => expect(scene.services()).toEqual(['svc:alive']), 5000);
  });

  it('takes no device without a tag for a mesh pod, since each chooses its own hostname', async () => {
    const scene = await startVipScene();
    scene.api.addDevice({ hostname: `meshd-example-0-${STALE.installation}`, tags: [] });
    await scene.until(() => expect(scene.clock.now()).toBeGreaterThan(60_000), 30_000);
    addService(scene, 'svc:shared', [STALE, FRESH]);
    expect(await cleanUp(scene)).toMatchObject({ registrations: 1 });
    expect(clustersOf(scene, 'svc:shared')).toEqual(['there']);
  });

  it('leaves what devices that are online serve, whoever owns it, and nothing else', async () => {
    const scene = await startVipScene();
    const pod = scene.api.addDevice({
      hostname: `meshd-example-0-${STALE.installation}`,
      tags: ['tag:mesh'],
    });
    const other = scene.api.addDevice({ hostname: 'other', tags: ['tag:mesh'] });
    await scene.until(() => expect(pod.nodeId).not.toBe(other.nodeId), 60_000);
    addService(scene, 'svc:web', [STALE]);
    addService(scene, 'svc:lost', [{ ...STALE, installation: 'dddddddd' }]);
    addService(scene, 'svc:dead', [{ ...STALE, installation: 'dddddddd' }]);
    scene.api.advertise('svc:lost', other.nodeId);
    expect(await cleanUp(scene)).toMatchObject({ registrations: 1, services: 1 });
    await scene.until(() => expect(scene.clock.now()).toBeGreaterThan(240_000), 30_000);
    expect(scene.services().toSorted()).toEqual(['svc:lost', 'svc:web']);
  });

  it('leaves the services of a MeshTailnet that is being deleted, and ends nevertheless', async () => {
    const scene = await startVipScene();
    addService(scene, 'svc:dead', [STALE]);
    await scene.until(() => expect(scene.tailnet()?.status).toBeDefined());
    const tailnet = scene.tailnet();
    if (tailnet) await scene.memory.write.addFinalizer(tailnet, 'example.com/held');
    await scene.memory.author.remove({ kind: 'MeshTailnet', namespace: '', name: 'example' });
    const message =
      'no stale registration removed; MeshTailnet example: not all services were tried: it is being deleted';
    expect(await cleanUp(scene)).toMatchObject({ registrations: 0, services: 0, message });
    expect(scene.services()).toEqual(['svc:dead']);
  });

  it('takes several parts where there is much to remove', async () => {
    const scene = await startVipScene();
    for (let index = 0; index < 45; index++) addService(scene, `svc:dead-${index}`, [STALE]);
    expect(await cleanUp(scene)).toMatchObject({ registrations: 45, services: 45 });
    await scene.until(() => expect(scene.services()).toEqual([]), 5000);
  });

  it('is obeyed on one MeshGateway after the other, so that many of them take no more of the rate limit', async () => {
    const scene = await startVipScene();
    await scene.until(() => expect(scene.clock.now()).toBeGreaterThan(60_000), 30_000);
    const lists = () => scene.api.countByRoute()['services.list'] ?? 0;
    const [from, before] = [scene.clock.now(), lists()];
    const names = Array.from({ length: 8 }, (_, index) => `edge-${index}`);
    const annotations = { [FORCE_CLEANUP]: 'true' };
    for (const name of names) await scene.put(named(meshGateway(), `default/${name}`, { annotations }));
    await scene.until(() => expect(scene.clock.now() - from).toBeGreaterThan(20_000));
    expect(lists() - before).toBeLessThanOrEqual(4);
    await scene.until(() => {
      const messages = names.map(name => scene.gateway(name)?.lastCleanup);
      expect(messages).toEqual(
        names.map(() => expect.objectContaining({ message: 'no stale registration found' }) as unknown),
      );
    }, 5000);
  });

  it('tries each service once where many cannot be written, and reports how many', async () => {
    const scene = await startVipScene();
    const broken = Array.from({ length: 21 }, (_, index) => `svc:broken-${index}`);
    const annotations = withOwners({}, [STALE], false);
    // The control API refuses to write services without addresses.
    for (const name of broken) scene.api.addService({ name, annotations });
    for (let index = 0; index < 3; index++) addService(scene, `svc:dead-${index}`, [STALE]);
    const { registrations, services, message } = await cleanUp(scene);
    expect([registrations, services]).toEqual([3, 3]);
    expect(message).toMatch(
      /^3 stale registrations removed; svc:broken-0, svc:broken-1, svc:broken-2 and 18 more cannot be written: .*addrs must be .*; deleted in/,
    );
    await scene.until(() => expect(scene.services()).toEqual(broken), 5000);
    for (const name of broken) {
      scene.api.state.services.delete(name);
      addService(scene, name, [STALE]);
    }
    expect(await cleanUp(scene)).toMatchObject({ registrations: 21, services: 21 });
    await scene.until(() => expect(scene.services()).toEqual([]), 5000);
  });

  it('ends while the control API is away, and removes everything the next time', async () => {
    const scene = await startVipScene();
    for (let index = 0; index < 21; index++) addService(scene, `svc:dead-${index}`, [STALE]);
    const repair = scene.api.fail({ routes: ['services.put'], fault: FAULTS.unavailable });
    const result = await cleanUp(scene);
    expect(result).toMatchObject({ registrations: 0, services: 0 });
    expect(result.message).toMatch(
      /^no stale registration removed; MeshTailnet example: not all services were tried: /,
    );
    repair();
    expect(await cleanUp(scene)).toMatchObject({ registrations: 21, services: 21 });
    await scene.until(() => expect(scene.services()).toEqual([]), 5000);
  });

  it('deletes later what the control API refuses to delete', async () => {
    const scene = await startVipScene();
    for (let index = 0; index < 21; index++) addService(scene, `svc:dead-${index}`, [STALE]);
    const refusal = { is: 'answer', status: 400, json: { message: 'in use' } } as const;
    const repair = scene.api.fail({ routes: ['services.delete'], fault: refusal });
    await cleanUp(scene);
    // Each service is tried.
    await scene.until(
      () => expect(scene.api.countByRoute()['services.delete']).toBeGreaterThanOrEqual(21),
      5000,
    );
    expect(scene.services()).toHaveLength(21);
    expect(scene.tailnet()?.metadata.finalizers).toContain(FINALIZER);
    await scene.until(() => {
      const warnings = scene.lines.filter(({ msg }) => msg.includes('cannot be removed yet'));
      expect(warnings.map(({ service }) => service).toSorted()).toEqual(scene.services().toSorted());
    });
    expect(await scene.metrics()).toMatch(/registrations_total{tailnet="example",result="failed"} [1-9]/);
    repair();
    await scene.until(() => expect(scene.services()).toEqual([]), 5000);
    await scene.until(() => expect(scene.tailnet()?.metadata.finalizers ?? []).toEqual([]), 5000);
  });

  it('reports tailnets whose services it cannot list', async () => {
    const scene = await startVipScene({ scopes: ['devices:core', 'auth_keys'] });
    addService(scene, 'svc:dead', [STALE]);
    const { registrations, message } = await cleanUp(scene);
    expect(registrations).toBe(0);
    expect(message).toMatch(
      /^no stale registration removed; MeshTailnet example: not all services were tried: .* need the scope services/,
    );
    expect(scene.services()).toEqual(['svc:dead']);
  });

  it('touches no tailnet that the namespace may not use', async () => {
    const scene = await startVipScene();
    addService(scene, 'svc:dead', [STALE]);
    const tailnet = scene.tailnet();
    const allowedNamespaces = { from: 'Selector', selector: { matchLabels: { team: 'a' } } };
    await scene.put({
      ...{ apiVersion: API_VERSION, kind: 'MeshTailnet', metadata: { name: 'example' } },
      spec: { ...tailnet?.spec, allowedNamespaces },
    });
    expect(await cleanUp(scene)).toMatchObject({ registrations: 0, message: 'no stale registration found' });
    expect(clustersOf(scene, 'svc:dead')).toEqual(['gone']);
  });
});
