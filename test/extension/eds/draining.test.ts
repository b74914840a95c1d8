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

/** The endpoints that an Envoy has right after a change of the snapshot, and at the end. */
async function endpointsAfter(before: ClusterSnapshot, next: ClusterSnapshot) {
  const snapshots = new MemorySnapshots();
  snapshots.set(WEB, GATEWAY, before);
  const scene = new EdsFixture({ snapshots });
  const envoy = scene.envoy().begin(GATEWAY, [WEB]);
  snapshots.set(WEB, GATEWAY, next);
  await scene.clock.advance(5);
  const soon = envoy.endpoints.get(WEB);
  await scene.clock.advance(10_000);
  return { soon, inTheEnd: envoy.endpoints.get(WEB) };
}

const at = (...ports: readonly number[]) => ports.map(port => `100.64.0.1:${port}`);
const draining = (...ports: readonly number[]) => at(...ports).map(text => `${text} draining`);
const unused = (reason: 'NamespaceNotAllowed' | 'RefNotPermitted' | 'ProxyUnknown' | 'BackendNotFound') => ({
  reason,
  text: '',
  object: objectOf(0),
});

describe('a removed endpoint', () => {
  it('drains for a while, so that requests in flight complete', async () => {
    const { soon, inTheEnd } = await endpointsAfter(
      clusterSnapshot(WEB, [locality([1, 2])]),
      clusterSnapshot(WEB, [locality([1])]),
    );
    expect(soon).toEqual([...at(1), ...draining(2)]);
    expect(inTheEnd).toEqual(at(1));
  });

  it('is removed at once if its address is that of a relay, whose port may soon be that of another endpoint', async () => {
    const relayedTo = { address: '100.64.0.1', port: 53 };
    const relayed = (...ports: readonly number[]) => {
      const [one] = [locality(ports)];
      return clusterSnapshot(WEB, [
        { ...one, endpoints: one.endpoints.map(each => ({ ...each, relayedTo })) },
      ]);
    };
    const { soon } = await endpointsAfter(relayed(1, 2), relayed(1));
    expect(soon).toEqual(at(1));
  });

  it('drains even if it was the last one', async () => {
    const next = clusterSnapshot(WEB, [], [unused('BackendNotFound')]);
    const { soon, inTheEnd } = await endpointsAfter(clusterSnapshot(WEB, [locality([1])]), next);
    expect(soon).toEqual(draining(1));
    expect(inTheEnd).toEqual([]);
  });

  it.each(['NamespaceNotAllowed', 'RefNotPermitted', 'ProxyUnknown'] as const)(
    'is removed at once if its object must not be used: %s',
    async reason => {
      const { soon } = await endpointsAfter(
        clusterSnapshot(WEB, [locality([1])]),
        clusterSnapshot(WEB, [], [unused(reason)]),
      );
      expect(soon).toEqual([]);
    },
  );

  it('is removed at once if another object has its address', async () => {
    const next = clusterSnapshot(WEB, [locality([1], { backend: 1 })]);
    const { soon } = await endpointsAfter(clusterSnapshot(WEB, [locality([1])]), next);
    expect(soon).toEqual(at(1));
  });

  it('is removed at once beside several localities, between which it would shift traffic', async () => {
    const next = clusterSnapshot(WEB, [locality([1]), locality([3], { backend: 1 })]);
    const before = clusterSnapshot(WEB, [locality([1, 2]), locality([3], { backend: 1 })]);
    const { soon } = await endpointsAfter(before, next);
    expect(soon).toEqual(at(1, 3));
  });

  it('is removed at once if only another locality is left', async () => {
    const next = clusterSnapshot(WEB, [locality([3], { backend: 1 })]);
    const { soon } = await endpointsAfter(clusterSnapshot(WEB, [locality([1])]), next);
    expect(soon).toEqual(at(3));
  });

  it('is used again if it returns while it drains', async () => {
    const snapshots = new MemorySnapshots();
    snapshots.set(WEB, GATEWAY, [1, 2]);
    const scene = new EdsFixture({ snapshots });
    const envoy = scene.envoy().begin(GATEWAY, [WEB]);
    for (const ports of [[1], [1, 2]]) {
      snapshots.set(WEB, GATEWAY, ports);
      await scene.clock.advance(1000);
    }
    expect(envoy.endpoints.get(WEB)).toEqual(at(1, 2));
    await scene.clock.advance(10_000);
    expect(envoy.pushed).toHaveLength(3);
  });

  it('drains for its own time, independently of others', async () => {
    const snapshots = new MemorySnapshots();
    snapshots.set(WEB, GATEWAY, [1, 2, 3]);
    const scene = new EdsFixture({ snapshots }, { drainMs: 1000 });
    const envoy = scene.envoy().begin(GATEWAY, [WEB]);
    const after = async (ms: number) => {
      await scene.clock.advance(ms);
      return envoy.endpoints.get(WEB);
    };
    snapshots.set(WEB, GATEWAY, [1, 2]);
    await after(600);
    snapshots.set(WEB, GATEWAY, [1]);
    await expect(after(300)).resolves.toEqual([...at(1), ...draining(3), ...draining(2)]);
    await expect(after(300)).resolves.toEqual([...at(1), ...draining(2)]);
    await expect(after(600)).resolves.toEqual(at(1));
  });

  it('drains for the whole time again after it returned', async () => {
    const snapshots = new MemorySnapshots();
    snapshots.set(WEB, GATEWAY, [1, 2]);
    const scene = new EdsFixture({ snapshots }, { drainMs: 1000 });
    const envoy = scene.envoy().begin(GATEWAY, [WEB]);
    for (const ports of [[1], [1, 2], [1]]) {
      snapshots.set(WEB, GATEWAY, ports);
      await scene.clock.advance(600);
    }
    expect(envoy.endpoints.get(WEB)).toEqual([...at(1), ...draining(2)]);
  });
});
