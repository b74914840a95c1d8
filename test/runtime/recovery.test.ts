import { describe, expect, it } from 'vitest';
import { ResourceError } from '../../src/store/resources.ts';
import type { ResourceErrorReason } from '../../src/store/resources.ts';
import { refOfWeb, web } from '../support/runtime/running-controller.ts';
import { Runtime } from '../support/runtime/runtime.ts';

const AWAY_MS = 1_800_000;

/** A controller that writes the status of each object, and how the API server responds to it. */
function sceneOf(objects: number) {
  const names = Array.from({ length: objects }, (_, index) => `web-${index}`);
  const runtime = new Runtime(names.map(name => web(name)));
  const { clock, memory } = runtime;
  const server = { response: 'written' as ResourceErrorReason | 'written' };
  const calls: number[] = [];
  runtime.start({
    kind: 'MeshEndpoints',
    reconcile: async ref => {
      const object = memory.read.get(refOfWeb(ref.name));
      if (!object || object.status?.observedGeneration !== undefined) return { requeue: 'on-change' };
      calls.push(clock.now());
      if (server.response !== 'written') throw new ResourceError(server.response, 'no');
      await memory.write.replaceStatus(object, { observedGeneration: 1 });
      return { requeue: 'on-change' };
    },
  });
  const outdated = () =>
    names.filter(name => memory.read.get(refOfWeb(name))?.status?.observedGeneration === undefined);
  /** The calls in each second since a time. */
  const perSecond = (since: number) => {
    const counts = Array<number>(60).fill(0);
    for (const at of calls) {
      const second = Math.floor((at - since) / 1000);
      if (second >= 0 && second < counts.length) counts[second] = (counts[second] ?? 0) + 1;
    }
    return counts;
  };
  return { clock, memory, server, outdated, perSecond };
}

describe('an API server that comes back', () => {
  it.each([1, 500])(
    'after 30 minutes has %i current objects within a minute, without a burst',
    async objects => {
      const { clock, memory, server, outdated, perSecond } = sceneOf(objects);
      server.response = 'Unavailable';
      await memory.start();
      await clock.advance(AWAY_MS);
      expect(outdated()).toHaveLength(objects);
      const away = perSecond(AWAY_MS - 60_000);
      server.response = 'written';
      await clock.advance(60_000);
      const back = perSecond(AWAY_MS);
      console.log(`${objects} objects, calls per second while away: ${away.join(' ')}`);
      console.log(`${objects} objects, calls per second after that: ${back.join(' ')}`);
      expect(outdated()).toEqual([]);
      expect(Math.max(...away)).toBeLessThanOrEqual(20);
      // Within an order of magnitude of an even load.
      expect(Math.max(...back)).toBeLessThanOrEqual(Math.max(20, objects / 10));
    },
  );

  it('and refuses everything for a few seconds is no reason for long backoffs', async () => {
    const { clock, memory, server, outdated } = sceneOf(100);
    server.response = 'Unavailable';
    await memory.start();
    await clock.advance(AWAY_MS);
    server.response = 'Refused';
    await clock.advance(5000);
    server.response = 'written';
    await clock.advance(60_000);
    expect(outdated()).toEqual([]);
  });
});
