import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { controllerIndexes } from '../../../src/controllers/registry.ts';
import { offeringReader, usersFrom } from '../../../src/controllers/vip-services/offering.ts';
import type { ReadOffering } from '../../../src/controllers/vip-services/offering.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { named } from '../../support/declared.ts';
import { endpoint, meshEndpoints } from '../../support/objects.ts';
import { createMemory } from '../../support/store/memory.ts';
import { tailnetObject } from '../../support/traffic/objects.ts';

const NAMES = ['a', 'svc:a', 'b', 'c', 'd'];

function lister(place: string, names: readonly string[]): object {
  const vipServices = names.map(name => ({ name, port: 443, targetEndpoint: 'web' }));
  return named(meshEndpoints({ endpoints: [endpoint()], serviceDiscovery: { vipServices } }), place);
}

/** A store, and what readers read of it now. */
async function storeOf(objects: readonly object[]) {
  let second = 0;
  const now = () => new Date(Date.UTC(2026, 0, 15) + 1000 * (second++ % 3));
  const indexes = [...trafficIndexes, ...controllerIndexes];
  const memory = createMemory(indexes, [tailnetObject(), ...objects], { now });
  await memory.start();
  const tracking = new Tracking(memory.read);
  const reads = tracking.readsOf({ affected: () => undefined });
  return {
    memory,
    reader: (clock: Parameters<typeof offeringReader>[1] = systemClock) =>
      offeringReader(usersFrom(tracking), clock),
    read: async (offerings: ReadOffering) => {
      const run = reads.open();
      const tailnet = run.get({ kind: 'MeshTailnet', namespace: '', name: 'main' });
      if (!tailnet) throw new Error('no tailnet');
      const { listers } = await offerings(tailnet, run);
      reads.close(run, true);
      return new Map([...listers].map(([name, all]) => [name, all.map(({ place }) => place)]));
    },
  };
}

describe('the objects that list a name', () => {
  it('are read as if for the first time after any changes, the oldest first', async () => {
    const change = fc.record({
      place: fc.constantFrom('x/one', 'x/two', 'y/one', 'y/three'),
      names: fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 4 }),
      isDeleted: fc.boolean(),
      isRead: fc.boolean(),
    });
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 12 }), async changes => {
        const { memory, reader, read } = await storeOf([]);
        const kept = reader();
        for (const { place, names, isDeleted, isRead } of changes) {
          const [namespace = '', name = ''] = place.split('/');
          if (isDeleted) await memory.author.remove({ kind: 'MeshEndpoints', namespace, name });
          else await memory.author.put(lister(place, names));
          if (!isRead) continue;
          expect(await read(kept)).toEqual(await read(reader()));
          compared++;
        }
      }),
      { numRuns: 200 },
    );
    expect(compared).toBeGreaterThan(200);
  });

  it('are read in slices, so that a tenant with many of them holds up no other work', async () => {
    const objects = Array.from({ length: 100 }, (_, at) => lister(`tenant/o${at}`, ['a', `own-${at}`]));
    const { memory, reader, read } = await storeOf(objects);
    let [time, turns] = [0, 0];
    const clock = {
      now: () => time++,
      soon: (call: () => void) => {
        turns++;
        setImmediate(call);
      },
    };
    const offerings = reader(clock);
    expect((await read(offerings)).get('svc:a')).toHaveLength(100);
    const turnsAtFirst = turns;
    expect(turnsAtFirst).toBeGreaterThanOrEqual(20);
    await memory.author.put(lister('tenant/o7', ['b']));
    const after = await read(offerings);
    expect([after.get('svc:a')?.length, after.get('svc:own-7'), after.get('svc:b')]).toEqual([
      99,
      undefined,
      ['tenant/o7'],
    ]);
    expect(turns).toBe(turnsAtFirst);
  });
});
