import { describe, expect, it } from 'vitest';
import { OWNERS } from '../../../src/controllers/vip-services/owners.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';
import { MemoryNamespace } from '../../support/controllers/mesh-tailnet/namespace.ts';
import { startVipScene } from '../../support/controllers/vip-services/scene.ts';
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

async function startWithPods() {
  const namespace = new MemoryNamespace();
  const meshPods = new ServingPods(namespace);
  const scene = await startVipScene({ namespace, meshPods });
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
