import { describe, expect, it } from 'vitest';
import type { ClusterSnapshot } from '../../../src/extension/resolution-cache.ts';
import { EdsFixture } from '../../support/extension/eds-fixture.ts';
import {
  clusterSnapshot,
  locality,
  objectOf,
  MemorySnapshots,
} from '../../support/extension/memory-snapshots.ts';

const GATEWAY = 'default/edge';
const WEB = 'httproute/default/web/rule/0';

/** What is told right after a change from one assignment to the next, and what is told in the end. */
async function told(before: ClusterSnapshot, next: ClusterSnapshot) {
  const world = new MemorySnapshots();
  world.set(WEB, GATEWAY, before);
  const scene = new EdsFixture({ snapshots: world });
  const envoy = scene.envoy().begin(GATEWAY, [WEB]);
  world.set(WEB, GATEWAY, next);
  await scene.clock.advance(5);
  const soon = envoy.endpoints.get(WEB);
  await scene.clock.advance(10_000);
  return { soon, inTheEnd: envoy.endpoints.get(WEB) };
}

const at = (...ports: readonly number[]) => ports.map(port => `100.64.0.1:${port}`);
const draining = (...ports: readonly number[]) => at(...ports).map(text => `${text} draining`);
const unused = (reason: 'NamespaceNotAllowed' | 'RefNotPermitted' | 'ProxyUnknown' | 'BackendNotFound') => ({
  reason,
  message: '',
  object: objectOf(0),
});

describe('an endpoint that is assigned no more', () => {
  it('drains for a while, so that what is under way ends well', async () => {
    const { soon, inTheEnd } = await told(
      clusterSnapshot(WEB, [locality([1, 2])]),
      clusterSnapshot(WEB, [locality([1])]),
    );
    expect(soon).toEqual([...at(1), ...draining(2)]);
    expect(inTheEnd).toEqual(at(1));
  });

  it('drains even where no other is left', async () => {
    const next = clusterSnapshot(WEB, [], [unused('BackendNotFound')]);
    const { soon, inTheEnd } = await told(clusterSnapshot(WEB, [locality([1])]), next);
    expect(soon).toEqual(draining(1));
    expect(inTheEnd).toEqual([]);
  });

  it.each(['NamespaceNotAllowed', 'RefNotPermitted', 'ProxyUnknown'] as const)(
    'goes at once where its object is refused: %s',
    async reason => {
      const { soon } = await told(
        clusterSnapshot(WEB, [locality([1])]),
        clusterSnapshot(WEB, [], [unused(reason)]),
      );
      expect(soon).toEqual([]);
    },
  );

  it('goes at once where another object has its address now', async () => {
    const next = clusterSnapshot(WEB, [locality([1], { backend: 1 })]);
    const { soon } = await told(clusterSnapshot(WEB, [locality([1])]), next);
    expect(soon).toEqual(at(1));
  });

  it('goes at once where there is a choice of places, which it would tip', async () => {
    const next = clusterSnapshot(WEB, [locality([1]), locality([3], { backend: 1 })]);
    const before = clusterSnapshot(WEB, [locality([1, 2]), locality([3], { backend: 1 })]);
    const { soon } = await told(before, next);
    expect(soon).toEqual(at(1, 3));
  });

  it('goes at once where only another place is left', async () => {
    const next = clusterSnapshot(WEB, [locality([3], { backend: 1 })]);
    const { soon } = await told(clusterSnapshot(WEB, [locality([1])]), next);
    expect(soon).toEqual(at(3));
  });

  it('is used as before where it comes back while it drains', async () => {
    const world = new MemorySnapshots();
    world.set(WEB, GATEWAY, [1, 2]);
    const scene = new EdsFixture({ snapshots: world });
    const envoy = scene.envoy().begin(GATEWAY, [WEB]);
    for (const ports of [[1], [1, 2]]) {
      world.set(WEB, GATEWAY, ports);
      await scene.clock.advance(1000);
    }
    expect(envoy.endpoints.get(WEB)).toEqual(at(1, 2));
    await scene.clock.advance(10_000);
    expect(envoy.told).toHaveLength(3);
  });

  it('drains for its own time, whatever else leaves meanwhile', async () => {
    const world = new MemorySnapshots();
    world.set(WEB, GATEWAY, [1, 2, 3]);
    const scene = new EdsFixture({ snapshots: world }, { drainMs: 1000 });
    const envoy = scene.envoy().begin(GATEWAY, [WEB]);
    const after = async (ms: number) => {
      await scene.clock.advance(ms);
      return envoy.endpoints.get(WEB);
    };
    world.set(WEB, GATEWAY, [1, 2]);
    await after(600);
    world.set(WEB, GATEWAY, [1]);
    await expect(after(300)).resolves.toEqual([...at(1), ...draining(3), ...draining(2)]);
    await expect(after(300)).resolves.toEqual([...at(1), ...draining(2)]);
    await expect(after(600)).resolves.toEqual(at(1));
  });

  it('drains again from the start where it came back and left once more', async () => {
    const world = new MemorySnapshots();
    world.set(WEB, GATEWAY, [1, 2]);
    const scene = new EdsFixture({ snapshots: world }, { drainMs: 1000 });
    const envoy = scene.envoy().begin(GATEWAY, [WEB]);
    for (const ports of [[1], [1, 2], [1]]) {
      world.set(WEB, GATEWAY, ports);
      await scene.clock.advance(600);
    }
    expect(envoy.endpoints.get(WEB)).toEqual([...at(1), ...draining(2)]);
  });
});
