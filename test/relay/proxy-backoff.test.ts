import { expect, it } from 'vitest';
import { ProxyBackoff } from '../../src/relay/proxy-backoff.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** Fails at each time at which it may, for a time; returns the times. */
async function triesIn(backoff: ProxyBackoff, clock: VirtualClock, ms: number): Promise<readonly number[]> {
  const tries: number[] = [];
  for (let at = 0; at < ms; at += 100) {
    if (!backoff.isActive) tries.push(at);
    // All that fail together count as one.
    backoff.failed();
    backoff.failed();
    await clock.advance(100);
  }
  return tries;
}

it('doubles from 0.1 s to 5 s, and begins again after a success', async () => {
  const clock = new VirtualClock();
  const backoff = new ProxyBackoff(clock);
  expect(backoff.isActive).toBe(false);
  expect(await triesIn(backoff, clock, 17_000)).toEqual([0, 100, 300, 700, 1500, 3100, 6300, 11_300, 16_300]);
  await clock.advance(5000);
  backoff.succeeded();
  expect(await triesIn(backoff, clock, 1000)).toEqual([0, 100, 300, 700]);
});
