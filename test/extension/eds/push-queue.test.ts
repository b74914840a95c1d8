import { describe, expect, it } from 'vitest';
import { EdsFixture } from '../../support/extension/eds-fixture.ts';
import { MemorySnapshots } from '../../support/extension/memory-snapshots.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const GATEWAY = 'default/edge';
const CLUSTERS = ['a', 'b', 'c'];

describe('the push queue', () => {
  it('yields to the event loop between clusters that take long to compute', async () => {
    const snapshots = new SlowSnapshots();
    const waiting: (() => void)[] = [];
    const time = new VirtualClock();
    const clock = {
      now: () => time.now() + snapshots.spentMs,
      after: (ms: number, call: () => void) => time.after(ms, call),
      soon: (call: () => void) => void waiting.push(call),
    };
    for (const cluster of CLUSTERS) snapshots.set(cluster, GATEWAY, [80]);
    const envoy = new EdsFixture({ snapshots, clock }).envoy().begin(GATEWAY, CLUSTERS);
    for (const cluster of CLUSTERS) snapshots.set(cluster, GATEWAY, [81]);
    await time.advance(5);
    const pushes = [envoy.pushed.length];
    while (waiting.length > 0) {
      waiting.shift()?.();
      pushes.push(envoy.pushed.length);
    }
    expect(pushes).toEqual([2, 3, 4, 4]);
    expect(envoy.pushed.slice(1).flat()).toEqual(CLUSTERS);
  });
});

/** Snapshots that each take 20 ms to compute. */
class SlowSnapshots extends MemorySnapshots {
  spentMs = 0;

  override snapshot(cluster: string, gateway: string) {
    this.spentMs += 20;
    return super.snapshot(cluster, gateway);
  }
}
