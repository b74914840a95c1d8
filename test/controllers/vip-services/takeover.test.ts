import { describe, expect, it } from 'vitest';
import { FAULTS } from '../../../lab/control-api/faults.ts';
import { OWNERS, ownersOf } from '../../../src/controllers/vip-services/owners.ts';
import type { Owner } from '../../../src/controllers/vip-services/owners.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';
import { MemoryNamespace } from '../../support/controllers/mesh-tailnet/namespace.ts';
import { INSTALLATION, startVipScene } from '../../support/controllers/vip-services/scene.ts';
import type { VipSceneOptions } from '../../support/controllers/vip-services/scene.ts';
import { ServingPods } from '../../support/controllers/vip-services/serving-pods.ts';

const [VICTIM, ATTACKER] = ['100.64.0.1:8080', '100.64.0.66:8080'];
const SERVICE = 'svc:payments';

/** A MeshEndpoints of a namespace whose endpoint has no health checks, and that lists these services. */
function listing(
  name: string,
  services: readonly string[],
  more: object = {},
  discovery: object = {},
): object {
  const [meshIP, port] = (name === 'victim/payments' ? VICTIM : ATTACKER).split(':');
  const vipServices = services.map(service => ({ name: service, port: 443, targetEndpoint: 'web' }));
  const endpoints = [endpoint({ name: 'web', meshIP, port: Number(port) })];
  return named(meshEndpoints({ endpoints, serviceDiscovery: { vipServices, ...discovery }, ...more }), name);
}

const VICTIMS = listing('victim/payments', ['payments']);
const ATTACKERS = listing('attacker/payments', ['payments']);

async function startWithPods(options: Pick<VipSceneOptions, 'maxVipServices' | 'spec'> = {}) {
  const namespace = new MemoryNamespace();
  const meshPods = new ServingPods(namespace);
  const scene = await startVipScene({ namespace, meshPods, ...options });
  const stateOf = (owner: string) => {
    const object = scene.memory.read.get({ kind: 'MeshEndpoints', namespace: owner, name: 'payments' });
    const entry = object?.status?.vipServices?.find(({ name }) => name === 'payments');
    return entry ? `${entry.status} ${entry.reason}` : 'none';
  };
  return {
    ...{ ...scene, meshPods, namespace, stateOf },
    removeVictim: () =>
      scene.memory.author.remove({ kind: 'MeshEndpoints', namespace: 'victim', name: 'payments' }),
    /** Lets time pass; at no moment may the attacker's target be served. */
    pass: async (seconds: number) => {
      for (let left = seconds; left > 0; left--) {
        await scene.clock.advance(1000);
        await new Promise(setImmediate);
        expect(meshPods.targetsOf(SERVICE)).not.toContain(ATTACKER);
      }
    },
    isServed: (target: string) =>
      scene.until(() => expect(meshPods.targetsOf(SERVICE)).toEqual([target]), 100),
  };
}

describe('the name of a VIP service', () => {
  it('stays with the object that has registered it, though another lists it longer with a stale status', async () => {
    const scene = await startWithPods();
    // Older than that of the victim: it waits, is paused, and drops the name.
    await scene.put(listing('attacker/payments', ['payments'], {}, { autoRegister: false }));
    await scene.until(() => expect(scene.stateOf('attacker')).toBe('Pending NotFound'));
    const paused = { paused: true };
    await scene.put(listing('attacker/payments', ['payments'], paused, { autoRegister: false }));
    await scene.put(listing('attacker/payments', ['other'], paused, { autoRegister: false }));
    // What it lists no more leaves its status, though it is paused.
    await scene.until(() => expect(scene.stateOf('attacker')).toBe('none'));
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.put(listing('attacker/payments', ['payments'], paused, { autoRegister: false }));
    await scene.pass(120);
    await scene.isServed(VICTIM);
    expect(scene.stateOf('victim')).toMatch(/^Registered /);
  });

  it('stays with it where its entry in the tailnet is lost, or the service was made again', async () => {
    const scene = await startWithPods();
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.put(ATTACKERS);
    await scene.until(() => expect(scene.stateOf('attacker')).toBe('Conflict ListedByOther'));
    const service = scene.api.state.services.current(SERVICE);
    if (!service) throw new Error('the service is registered');
    for (const annotations of [{}, { [OWNERS]: JSON.stringify({ owners: [] }) }]) {
      scene.api.state.services.put(SERVICE, { ...service, annotations });
      await scene.pass(90);
    }
    await scene.isServed(VICTIM);
  });

  it('is left for a namespace while another lists more names than its share', async () => {
    const scene = await startWithPods({ maxVipServices: 16 });
    const names = Array.from({ length: 20 }, (_, index) => `a-${index}`);
    await scene.put(listing('attacker/payments', [...names, 'payments']));
    await scene.until(() => expect(scene.stateOf('attacker')).toBe('Failed TooManyServices'));
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    expect(scene.services()).toHaveLength(3);
    const message = /has 2 VIP services on this tailnet already, or all namespaces have 16: .* MAX_VIP_SERV/;
    expect(scene.events.join('\n')).toMatch(message);
  });

  it('stays with it across a restart of the operator', async () => {
    const scene = await startWithPods();
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.put(ATTACKERS);
    const meshPods = new ServingPods(scene.namespace);
    const next = await startVipScene({ namespace: scene.namespace, meshPods });
    // To the new process the objects come in another order.
    await next.put(ATTACKERS);
    await next.put(VICTIMS);
    await next.until(() => expect(next.services()).toContain(SERVICE));
    expect(meshPods.targetsOf(SERVICE)).toEqual([VICTIM]);
  });

  it('is kept for ten minutes for an object that was deleted, and then goes to another', async () => {
    const scene = await startWithPods();
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.put(ATTACKERS);
    await scene.removeVictim();
    await scene.pass(590);
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.removeVictim();
    await scene.pass(590);
    expect(scene.meshPods.targetsOf(SERVICE)).toEqual([]);
    await scene.isServed(ATTACKER);
  });

  it('is kept for ten minutes for an object that may not use the tailnet, whose namespace lost a label', async () => {
    const matchLabels = { team: 'shop' };
    const labelled = (name: string, labels: object) =>
      scene.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    const scene = await startWithPods({
      spec: { allowedNamespaces: { from: 'Selector', selector: { matchLabels } } },
    });
    await labelled('victim', matchLabels);
    await labelled('attacker', matchLabels);
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.put(ATTACKERS);
    await labelled('victim', {});
    await scene.pass(590);
    expect(scene.meshPods.targetsOf(SERVICE)).toEqual([]);
    await labelled('victim', matchLabels);
    await scene.isServed(VICTIM);
  });

  it('is kept for ten minutes where the MeshTailnet is deleted and created again', async () => {
    const scene = await startWithPods();
    const tailnet = scene.tailnet();
    // Older than the object of the victim.
    await scene.put(listing('attacker/payments', ['other']));
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.put(ATTACKERS);
    await scene.memory.author.remove({ kind: 'MeshTailnet', namespace: '', name: 'example' });
    await scene.until(() => expect(scene.tailnet()).toBeUndefined());
    await scene.put({ ...tailnet, metadata: { name: 'example' } });
    await scene.until(() => expect(scene.stateOf('victim')).toMatch(/^Registered /));
    await scene.pass(90);
    expect(scene.stateOf('attacker')).toBe('Conflict ListedByOther');
  });

  it('changes hands only once each mesh pod serves the old target no more', async () => {
    const scene = await startWithPods();
    await scene.put(VICTIMS);
    await scene.isServed(VICTIM);
    await scene.put(ATTACKERS);
    scene.meshPods.stopOne();
    await scene.put(listing('victim/payments', []));
    await scene.pass(120);
    expect(scene.meshPods.targetsOf(SERVICE)).toEqual([VICTIM]);
    scene.meshPods.goOn();
    await scene.isServed(ATTACKER);
  });
});

/** The owner of the name in another cluster, whose operator writes it each time that it is asked to. */
const OF_OTHER_CLUSTER = {
  ...{ installation: 'ffffffff', cluster: 'there', object: 'victim/payments', strategy: 'shared' },
  ...{ ports: ['tcp:443'], tags: ['tag:mesh'], heartbeat: '2026-01-15T12:00:00Z' },
};

async function startBesideOther(more: Partial<Record<keyof Owner, unknown>>, spec: object = {}) {
  const scene = await startVipScene({ spec: { pool: { mode: 'Managed' }, ...spec } });
  const owners = [{ ...OF_OTHER_CLUSTER, ...more }];
  scene.api.addService({
    ...{ name: SERVICE, addrs: ['100.96.0.9', 'fd7a:115c:a1e0:ff::9'], ports: ['tcp:443'] },
    ...{ tags: ['tag:mesh'], annotations: { [OWNERS]: JSON.stringify({ owners }) } },
  });
  const entryOf = (namespace: string) => {
    const object = scene.memory.read.get({ kind: 'MeshEndpoints', namespace, name: 'payments' });
    return object?.status?.vipServices?.find(({ name }) => name === 'payments');
  };
  const owned = () => ownersOf(scene.service(SERVICE)).map(({ installation }) => installation);
  const isReported = async (namespace: string, status: string) => {
    await scene.until(() => {
      const entry = entryOf(namespace);
      expect(entry && `${entry.status} ${entry.reason}`).toMatch(new RegExp(status));
    });
    return { message: entryOf(namespace)?.message, warnings: entryOf(namespace)?.warnings, owned: owned() };
  };
  return { ...scene, isReported, owned };
}

describe('the name of a VIP service of another cluster', () => {
  it('is not shared by whoever lists it here, who reads what its owner has to add', async () => {
    const scene = await startBesideOther({ shareWith: [] });
    await scene.put(ATTACKERS);
    const { message, owned } = await scene.isReported('attacker', '^Conflict NotShared$');
    expect(owned).toEqual(['ffffffff']);
    const line = `shareWith: [{"installation":"${INSTALLATION}","namespace":"attacker"}]`;
    expect(message).toContain(line);
    expect(scene.events.join()).toContain('Warning Conflict');
  });

  it('is not shared by an equal namespace and name, whatever clusterID a tenant writes', async () => {
    const scene = await startBesideOther({ cluster: 'unknown', shareWith: ['ffffffff'] });
    await scene.put(VICTIMS);
    const { owned } = await scene.isReported('victim', '^Conflict NotShared$');
    expect(owned).toEqual(['ffffffff']);
  });

  it.each([
    ['with this installation', INSTALLATION],
    ['with this namespace of this installation', `${INSTALLATION}/victim`],
    ['by trust in this installation, with the same object', `${INSTALLATION}/victim/payments`],
  ])('is shared %s alone', async (_, shareWith) => {
    const scene = await startBesideOther({ shareWith: [shareWith] });
    await scene.put(VICTIMS);
    await scene.isReported('victim', '^Registered ');
    expect(scene.owned()).toEqual(['ffffffff', INSTALLATION]);
  });

  it('is not inherited with the name here, by an object that its owner does not share it with', async () => {
    const scene = await startBesideOther({ shareWith: [`${INSTALLATION}/victim`] });
    await scene.put(VICTIMS);
    await scene.isReported('victim', '^Registered ');
    await scene.put(ATTACKERS);
    await scene.isReported('attacker', '^Conflict ListedByOther$');
    // The entry of the victim stays until it can be written.
    const repair = scene.api.fail({ routes: ['services.put'], fault: FAULTS.unavailable });
    await scene.put(listing('victim/payments', []));
    await scene.isReported('attacker', '^(?!Conflict ListedByOther$)');
    repair();
    await scene.isReported('attacker', '^Conflict NotShared$');
    expect(scene.owned()).toEqual(['ffffffff']);
  });

  it('is not taken where its service is deleted by an administrator, before its owner has made it again', async () => {
    const scene = await startBesideOther({ shareWith: [] });
    const made = scene.service(SERVICE);
    await scene.put(ATTACKERS);
    await scene.isReported('attacker', '^Conflict NotShared$');
    scene.api.state.services.delete(SERVICE);
    await scene.isReported('attacker', '^Pending BeingRemoved$');
    await scene.clock.advance(540_000);
    expect(scene.service(SERVICE)).toBeUndefined();
    scene.api.addService({ ...made, name: SERVICE });
    await scene.isReported('attacker', '^Conflict NotShared$');
    scene.api.state.services.delete(SERVICE);
    await scene.clock.advance(601_000);
    await scene.isReported('attacker', '^Registered ');
  });

  it('stays with its owner where another has overwritten its entry, and does not share it in turn', async () => {
    const scene = await startBesideOther({});
    scene.api.state.services.delete(SERVICE);
    await scene.put(VICTIMS);
    await scene.isReported('victim', '^Registered ');
    const service = scene.service(SERVICE);
    const owners = [{ ...OF_OTHER_CLUSTER, shareWith: [] }];
    scene.api.addService({
      ...service,
      name: SERVICE,
      annotations: { [OWNERS]: JSON.stringify({ owners }) },
    });
    await scene.until(() => expect(scene.owned()).toEqual([INSTALLATION, 'ffffffff']));
    await scene.isReported('victim', '^Registered ');
  });

  it('is replaced once its owner, which is isolated, was away for a day, and no earlier', async () => {
    const scene = await startBesideOther({
      ...{ strategy: 'isolated', shareWith: [INSTALLATION] },
      heartbeat: '2026-01-14T12:05:00Z',
    });
    await scene.put(ATTACKERS);
    for (let minutes = 0; minutes < 4; minutes++) await scene.clock.advance(60_000);
    const { owned } = await scene.isReported('attacker', '^Conflict OwnedByOther$');
    expect(owned).toEqual(['ffffffff']);
    for (let minutes = 0; minutes < 2; minutes++) await scene.clock.advance(60_000);
    await scene.isReported('attacker', '^Registered ');
    expect(scene.owned()).toEqual([INSTALLATION]);
  });
});

describe('what an earlier version has shared without being asked to', () => {
  /** Joins as that version does: it keeps the entries of others, and knows no shareWith. */
  const joinAsBefore = ({ api }: Awaited<ReturnType<typeof startBesideOther>>) => {
    const service = api.state.services.current(SERVICE);
    if (!service) throw new Error('the service is registered');
    const { owners } = JSON.parse(service.annotations[OWNERS] ?? '') as { owners: object[] };
    const annotations = { [OWNERS]: JSON.stringify({ owners: [...owners, OF_OTHER_CLUSTER] }) };
    api.state.services.put(SERVICE, { ...service, annotations });
  };

  it('goes on, with a Warning in both, and stays where one operator is of that version', async () => {
    const scene = await startBesideOther({});
    scene.api.state.services.delete(SERVICE);
    await scene.put(VICTIMS);
    await scene.isReported('victim', '^Registered ');
    joinAsBefore(scene);
    const warned = () => scene.events.filter(event => event.startsWith('Warning NotShared'));
    await scene.until(() => expect(warned()).toHaveLength(1));
    for (let left = 10; left > 0; left--) await scene.clock.advance(60_000);
    const { warnings, owned } = await scene.isReported('victim', '^Registered ');
    expect(owned).toEqual([INSTALLATION, 'ffffffff']);
    const line = 'add shareWith: [{"installation":"ffffffff","namespace":"victim"}]';
    expect(warnings).toEqual([{ reason: 'NotShared', message: expect.stringContaining(line) as string }]);
    expect(warned()).toHaveLength(1);
  });

  it('is not joined by one more, which that version cannot admit', async () => {
    const scene = await startBesideOther({});
    await scene.put(ATTACKERS);
    const { owned } = await scene.isReported('attacker', '^Conflict NotShared$');
    expect(owned).toEqual(['ffffffff']);
  });
});

it('trust in an installation shares with its objects of the same namespace and name', async () => {
  const scene = await startVipScene({ spec: { trustedInstallations: ['ffffffff'] } });
  await scene.put(VICTIMS);
  await scene.until(() => {
    const [own] = ownersOf(scene.service(SERVICE));
    expect(own?.shareWith).toEqual(['ffffffff/victim/payments']);
  });
});
