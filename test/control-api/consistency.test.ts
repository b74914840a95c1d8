import { describe, expect, it } from 'vitest';
import { callsOf, keyBody, simulated } from '../support/control/simulated.ts';
import type { SendCall, Simulated } from '../support/control/simulated.ts';

async function withDelay(
  consistency: Parameters<Simulated['setConsistency']>[0],
): Promise<readonly [Simulated, SendCall]> {
  const api = await simulated();
  const call = await callsOf(api, api.addClient(['all']));
  api.setConsistency(consistency);
  return [api, call];
}

const count = async (call: SendCall, path: string, name: string) =>
  ((await call('GET', path)).json as Readonly<Record<string, readonly unknown[]>>)[name]?.length;
const devices = (call: SendCall) => count(call, '/tailnet/-/devices', 'devices');

describe('requirement 11: a write', () => {
  it('is visible in lists later than in reads of one object', async () => {
    const [api, call] = await withDelay({ listDelayMs: [5_000, 5_000], getDelayMs: [1_000, 1_000] });
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    const seen = async () => [(await call('GET', `/device/${nodeId}`)).status, await devices(call)];
    expect(await seen()).toEqual([404, 0]);
    api.clock.advance(1_000);
    expect(await seen()).toEqual([200, 0]);
    api.clock.advance(4_000);
    expect(await seen()).toEqual([200, 1]);
    await call('DELETE', `/device/${nodeId}`);
    expect(await devices(call)).toBe(1);
    api.clock.advance(5_000);
    expect(await devices(call)).toBe(0);
  });

  it('is visible after a time in the configured range, the same for the same seed', async () => {
    const visibleAfter = async () => {
      const [api, call] = await withDelay({ listDelayMs: [1_000, 9_000] });
      const seconds: number[] = [];
      for (let number = 0; number < 5; number++) api.addDevice({ hostname: `web-${number}` });
      for (let second = 0; second < 10; second++) {
        seconds.push((await devices(call)) ?? 0);
        api.clock.advance(1_000);
      }
      return seconds;
    };
    const first = await visibleAfter();
    expect([first[0], first.at(-1)]).toEqual([0, 5]);
    expect(new Set(first).size).toBeGreaterThan(2);
    expect(await visibleAfter()).toEqual(first);
  });

  it('never becomes visible before an earlier one to the same object', async () => {
    const [api, call] = await withDelay({ getDelayMs: [5_000, 5_000] });
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    api.setConsistency({ getDelayMs: [1_000, 1_000] });
    api.changeDevice(nodeId, { os: 'plan9' });
    api.clock.advance(4_999);
    expect(await call('GET', `/device/${nodeId}`)).toMatchObject({ status: 404 });
    api.clock.advance(1);
    expect(await call('GET', `/device/${nodeId}`)).toMatchObject({ json: { os: 'plan9' } });
  });

  it('of a key, a service and its hosts is visible later, too', async () => {
    const [api, call] = await withDelay({ listDelayMs: [1_000, 1_000], getDelayMs: [1_000, 1_000] });
    await call('POST', '/tailnet/-/keys', keyBody());
    await call('PUT', '/tailnet/-/services/svc:web', { name: 'svc:web', ports: [] });
    api.advertise('svc:web', api.addDevice({ hostname: 'host', tags: ['tag:mesh'] }).nodeId);
    const counts = () =>
      Promise.all([
        count(call, '/tailnet/-/keys', 'keys'),
        count(call, '/tailnet/-/services', 'vipServices'),
        count(call, '/tailnet/-/services/svc:web/devices', 'hosts'),
      ]);
    expect(await counts()).toEqual([1, 0, 0]);
    api.clock.advance(1_000);
    expect(await counts()).toEqual([2, 1, 1]);
  });

  it('may be missing again in a later stale read', async () => {
    const [api, call] = await withDelay({ staleReads: { share: 0.5, byMs: 60_000 } });
    api.addDevice({ hostname: 'web-1' });
    api.clock.advance(30_000);
    const seen: (number | undefined)[] = [];
    for (let number = 0; number < 20; number++) seen.push(await devices(call));
    expect(new Set(seen)).toEqual(new Set([0, 1]));
    api.clock.advance(30_000);
    for (let number = 0; number < 20; number++) expect(await devices(call)).toBe(1);
  });
});
