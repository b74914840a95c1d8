import { describe, expect, it } from 'vitest';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { cleanupsBy, tailnetsFor } from '../../../src/controllers/mesh-gateway/cleanup.ts';
import type { Cleanup } from '../../../src/controllers/mesh-gateway/cleanup.ts';
import { ResourceStore } from '../../../src/store/store.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { named } from '../../support/declared.ts';
import { meshGateway, meshTailnet } from '../../support/objects.ts';
import { resourceOf } from '../../support/store/resources.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const gatewayOf = (name: string) =>
  resourceOf(named(meshGateway(), `default/${name}`)) as Kinds['MeshGateway'];

/** The cleanups of a tailnet, each part of which takes a time and removes one registration, the last one or not. */
function cleanupsThatTake(ms: number, isComplete = true) {
  const clock = new VirtualClock();
  const store = new ResourceStore(trafficIndexes, failure => expect(failure).toBeUndefined());
  store.put(resourceOf(named(meshTailnet(), 'example')));
  const read = new Tracking(store).readsOf({ affected: () => undefined }).open();
  const sweep = async () => {
    await clock.advance(ms);
    return { registrations: 1, services: [], tried: ['svc:web'], failed: [], isComplete };
  };
  const cleanUp = cleanupsBy(sweep, { clock, now: () => new Date(clock.now()) });
  const { signal } = new AbortController();
  const tailnets = tailnetsFor('default', read);
  const memories = new Map<string, Cleanup>();
  const advance = async (name: string) => {
    const cleanup = await cleanUp(gatewayOf(name), { known: memories.get(name), tailnets, signal });
    memories.set(name, cleanup);
    return cleanup;
  };
  return { clock, advance };
}

describe('the cleanup of a second MeshGateway in a tailnet', () => {
  it.each([
    ['15 s after the end of the first', 5000, 15_000],
    ['as long after the end of a slow one as that took', 40_000, 40_000],
  ])('begins %s', async (_, tookMs, pauseMs) => {
    const { clock, advance } = cleanupsThatTake(tookMs);
    expect(await advance('first')).toMatchObject({ isComplete: true, result: { registrations: 1 } });
    const waiting = await advance('second');
    expect(waiting.isComplete).toBe(false);
    expect(waiting.result.message).toContain('another cleanup comes first');
    await clock.advance(pauseMs - 1);
    expect((await advance('second')).isComplete).toBe(false);
    await clock.advance(1);
    expect(await advance('second')).toMatchObject({
      isComplete: true,
      result: { registrations: 1, message: '1 stale registrations removed' },
    });
  });
});

describe('the cleanup of a MeshGateway', () => {
  it('goes on 30 s after its last part, however often it is reconciled before', async () => {
    const { clock, advance } = cleanupsThatTake(0, false);
    const removed = async () => (await advance('edge')).result.registrations;
    expect([await removed(), await removed()]).toEqual([1, 1]);
    await clock.advance(29_999);
    expect(await removed()).toBe(1);
    await clock.advance(1);
    expect(await removed()).toBe(2);
  });

  it('never goes on once it is complete, and keeps its result with the time', async () => {
    const { clock, advance } = cleanupsThatTake(0);
    const complete = await advance('edge');
    await clock.advance(3_600_000);
    expect(await advance('edge')).toEqual(complete);
  });
});
