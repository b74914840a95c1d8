import { describe, expect, it } from 'vitest';
import type { Kinds, ServiceCleanup } from '../../../src/api/generated/types.ts';
import { cleanupsBy, tailnetsFor } from '../../../src/controllers/mesh-gateway/cleanup.ts';
import type { Cleanup, Sweep } from '../../../src/controllers/mesh-gateway/cleanup.ts';
import { ResourceStore } from '../../../src/store/store.ts';
import { Tracking } from '../../../src/store/tracking.ts';
import { trafficIndexes } from '../../../src/store/traffic/resources.ts';
import { named } from '../../support/declared.ts';
import { meshGateway, meshTailnet } from '../../support/objects.ts';
import { resourceOf } from '../../support/store/resources.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const gatewayOf = (name: string, lastCleanup?: ServiceCleanup) =>
  resourceOf({
    ...named(meshGateway(), `default/${name}`),
    ...(lastCleanup && { status: { lastCleanup } }),
  }) as Kinds['MeshGateway'];

type Part = Awaited<ReturnType<Sweep>>;

/** The cleanups of a tailnet, each part of which takes a time and removes one registration, the last one or not. */
function cleanupsThatTake(ms: number, isComplete = true, part: Partial<Part> = {}) {
  const clock = new VirtualClock();
  const store = new ResourceStore(trafficIndexes, failure => expect(failure).toBeUndefined());
  store.put(resourceOf(named(meshTailnet(), 'example')));
  const read = new Tracking(store).readsOf({ affected: () => undefined }).open();
  const sweep = async () => {
    await clock.advance(ms);
    return { registrations: 1, services: [], tried: ['svc:web'], failed: [], isComplete, ...part };
  };
  const cleanUp = cleanupsBy(sweep, { clock, now: () => new Date(clock.now()) });
  const { signal } = new AbortController();
  const tailnets = tailnetsFor('default', read);
  const memories = new Map<string, Cleanup>();
  const advance = async (name: string, before?: ServiceCleanup) => {
    const cleanup = await cleanUp(gatewayOf(name, before), { known: memories.get(name), tailnets, signal });
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

describe('the result of a cleanup', () => {
  const NONE = { registrations: 0, services: [], failed: [] };
  const EARLIER: ServiceCleanup = {
    ...{ time: '2026-01-01T00:00:00Z', registrations: 3, services: 1, inProgress: true },
    message: 'of the process before',
  };
  const LEFT = 'deleted in about a minute, unless a device serves them';
  const failed = (service: string, reason: string) => ({
    service,
    error: Object.assign(new Error(`${reason} is why`), { reason }),
  });
  const resultOf = async (part: Partial<Part>, before?: ServiceCleanup) =>
    (await cleanupsThatTake(0, true, { ...NONE, ...part }).advance('edge', before)).result;

  it.each<readonly [string, Partial<Part>, ServiceCleanup | undefined, Partial<ServiceCleanup>]>([
    ['nothing', {}, undefined, { registrations: 0, services: 0, message: 'no stale registration found' }],
    ['nothing, after another process', {}, EARLIER, EARLIER],
    [
      'nothing, after a cleanup that has ended',
      {},
      { ...EARLIER, inProgress: false },
      { registrations: 0, services: 0, message: 'no stale registration found' },
    ],
    [
      'registrations, after another process',
      { registrations: 2 },
      EARLIER,
      { registrations: 5, services: 1, message: `5 stale registrations removed; ${LEFT}: 1 services` },
    ],
    [
      'services, after another process',
      { services: ['svc:a', 'svc:b'] },
      EARLIER,
      {
        ...{ registrations: 3, services: 3 },
        message: `3 stale registrations removed; ${LEFT}: svc:a, svc:b and 1 more`,
      },
    ],
    [
      'a problem, after another process',
      { problem: 'the control API is away' },
      EARLIER,
      {
        message: `3 stale registrations removed; MeshTailnet example: not all services were tried: the control API is away; ${LEFT}: 1 services`,
      },
    ],
    [
      'a problem',
      { problem: 'the control API is away' },
      undefined,
      {
        message:
          'no stale registration removed; MeshTailnet example: not all services were tried: the control API is away',
      },
    ],
    [
      'services that cannot be written, by reason',
      {
        failed: [
          ...['svc:a', 'svc:b', 'svc:c', 'svc:d'].map(name => failed(name, 'Forbidden')),
          failed('svc:e', 'Busy'),
        ],
      },
      undefined,
      {
        message:
          'no stale registration removed; svc:a, svc:b, svc:c and 1 more cannot be written: Forbidden is why; svc:e cannot be written: Busy is why',
      },
    ],
  ])('has %s', async (_, part, before, expected) => {
    expect(await resultOf(part, before)).toMatchObject(expected);
  });

  it('has the problem of each tailnet cut, and its message too', async () => {
    const { message: one } = await resultOf({ problem: 'x'.repeat(2000) });
    expect(one).toMatch(/^no stale registration removed; MeshTailnet example: .*x\.\.\.$/);
    expect(one.length).toBeLessThan(400);
    const services = Array.from({ length: 200 }, (_, at) => `svc:service-${at}`);
    const { message: all } = await resultOf({ services });
    expect(all.length).toBe(1024);
    expect(all).toMatch(/\.\.\.$/);
  });
});
