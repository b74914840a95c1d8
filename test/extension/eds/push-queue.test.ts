import { describe, expect, it } from 'vitest';
import { EdsFixture } from '../../support/extension/eds-fixture.ts';
import { MemorySnapshots } from '../../support/extension/memory-snapshots.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const GATEWAY = 'default/edge';
const CLUSTERS = ['a', 'b', 'c'];

describe('many changes at once', () => {
  it('leave others their turn where computing them takes long', async () => {
    const world = new SlowWorld();
    const waiting: (() => void)[] = [];
    const time = new VirtualClock();
    const clock = {
      now: () => time.now() + world.spentMs,
      after: (ms: number, call: () => void) => time.after(ms, call),
      soon: (call: () => void) => void waiting.push(call),
    };
    for (const cluster of CLUSTERS) world.set(cluster, GATEWAY, [80]);
    const envoy = new EdsFixture({ snapshots: world, clock }).envoy().begin(GATEWAY, CLUSTERS);
    for (const cluster of CLUSTERS) world.set(cluster, GATEWAY, [81]);
    await time.advance(5);
    const told = [envoy.told.length];
    while (waiting.length > 0) {
      waiting.shift()?.();
      told.push(envoy.told.length);
    }
    expect(told).toEqual([2, 3, 4, 4]);
    expect(envoy.told.slice(1).flat()).toEqual(CLUSTERS);
  });
});

/** A world in which every look takes 20 ms. */
class SlowWorld extends MemorySnapshots {
  spentMs = 0;

  override snapshot(cluster: string, gateway: string) {
    this.spentMs += 20;
    return super.snapshot(cluster, gateway);
  }
}
