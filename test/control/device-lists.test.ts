import { afterEach, describe, expect, it } from 'vitest';
import { startControlApi } from '../../lab/control-api/control-api.ts';
import { FAULTS } from '../../lab/control-api/faults.ts';
import type { TailnetSource } from '../../src/control/control.ts';
import { openTailnets } from '../../src/control/tailnets.ts';
import { inTime } from '../support/control/client.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const START = Date.UTC(2026, 0, 15, 12);
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function observed() {
  const clock = new VirtualClock();
  const api = await startControlApi({ clock: { now: () => START + clock.now() } });
  const { id: clientId, secret: clientSecret } = api.addClient(['devices:core', 'auth_keys']);
  const now = () => new Date(START + clock.now());
  const tailnets = openTailnets({ clock, now, random: () => 0, userAgent: 'test' });
  closing.push(
    () => api.close(),
    () => tailnets.close(),
  );
  const endpoint = { url: api.url, scopes: [], requestsPerSecond: 5, burst: 10 };
  const later = async (changes: Partial<TailnetSource['endpoint']> = {}, seconds = 30) => {
    await clock.advance(seconds * 1000);
    const credentials = { kind: 'oauth', clientId, clientSecret } as const;
    const source = {
      name: 'example',
      credentials,
      intervalMs: 30_000,
      endpoint: { ...endpoint, ...changes },
    };
    return await inTime(clock, tailnets.observe(source));
  };
  const notified: string[] = [];
  tailnets.subscribe(name => notified.push(name));
  return { api, tailnets, later, notified };
}

const hostnamesOf = ({
  devices = [],
}: {
  readonly devices?: readonly { readonly hostname: string }[] | undefined;
}) => devices.map(({ hostname }) => hostname);

describe('the list of devices', () => {
  it('is the same until one of them changes, which notifies subscribers', async () => {
    const { api, later, notified } = await observed();
    api.addDevice({ hostname: 'web-1' });
    const { devices } = await later();
    expect((await later()).devices).toBe(devices);
    expect(notified).toEqual(['example']);
    api.addDevice({ hostname: 'web-2' });
    const changed = await later();
    expect(changed.devices?.[0]).toBe(devices?.[0]);
    expect(hostnamesOf(changed)).toEqual(['web-1', 'web-2']);
    expect(notified).toEqual(['example', 'example']);
  });

  it('notifies subscribers once of a control API that is away, and once when it is back', async () => {
    const { api, later, notified } = await observed();
    await later();
    const heal = api.fail({ routes: ['devices.list'], fault: FAULTS.unavailable });
    await later();
    await later();
    expect(notified).toHaveLength(2);
    heal();
    expect((await later()).isStale).toBe(false);
    expect(notified).toHaveLength(3);
  });

  it.each([
    ['the rate limit', () => ({ requestsPerSecond: 4 })],
    ['the address of the control API', (url: string) => ({ url: url.replace('127.0.0.1', 'localhost') })],
  ])(
    'is kept where %s changes, and devices that the next lists lack leave as any others',
    async (_, change) => {
      const { api, later } = await observed();
      const { nodeId } = api.addDevice({ hostname: 'web-1' });
      await later();
      const changes = change(api.url);
      const heal = api.fail({ routes: ['devices.list'], fault: FAULTS.unavailable });
      expect(await later(changes)).toMatchObject({ isStale: true, devices: [{ hostname: 'web-1' }] });
      heal();
      api.removeDevice(nodeId);
      expect(hostnamesOf(await later(changes))).toEqual([]);
    },
  );
});

describe('a device that an earlier process has seen', () => {
  it('is expected until it was requested and does not exist', async () => {
    const { api, later, tailnets, notified } = await observed();
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    tailnets.expect('example', ['n1']);
    expect((await later()).expected.size).toBe(0);
    tailnets.expect('example', ['n1', nodeId]);
    expect(tailnets.lastView('example')?.expected).toEqual(new Set(['n1']));
    const before = notified.length;
    const view = await later();
    expect(hostnamesOf(view)).toEqual(['web-1']);
    expect(view.expected.size).toBe(0);
    expect(notified).toHaveLength(before + 2);
  });

  it('is listed again as soon as a list has it', async () => {
    const { api, later, tailnets } = await observed();
    await later();
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    tailnets.expect('example', [nodeId]);
    const view = await later();
    expect(hostnamesOf(view)).toEqual(['web-1']);
    expect(view.expected.size).toBe(0);
  });
});

describe('of devices that all differ with each list', () => {
  const COUNT = 500;

  /** Takes lists, each of as many new devices, and returns how many are known after each. */
  async function churn({ api, later }: Awaited<ReturnType<typeof observed>>, lists: number) {
    const counts: number[] = [];
    for (let list = 0; list < lists; list++) {
      const json = { devices: Array.from({ length: COUNT }, (_, at) => deviceOf(`${list}-${at}`)) };
      const heal = api.fail({ routes: ['devices.list'], fault: { is: 'answer', status: 200, json } });
      counts.push((await later()).devices?.length ?? 0);
      heal();
    }
    return counts;
  }

  const deviceOf = (id: string) => ({
    id,
    nodeId: id,
    name: `host-${id}.example.ts.net`,
    hostname: `host-${id}`,
    addresses: ['100.64.0.9'],
    authorized: true,
  });

  /** None of them can be requested by itself. */
  async function withoutRequests() {
    const given = await observed();
    const fault = { is: 'answer', status: 403, json: { message: 'no' } } as const;
    given.api.fail({ routes: ['device.get'], fault });
    return given;
  }

  it('twice the longest list is known, and the others are forgotten without a request', async () => {
    const given = await withoutRequests();
    expect(await churn(given, 7)).toEqual([COUNT, ...Array.from({ length: 6 }, () => 2 * COUNT)]);
    expect(given.api.countByRoute()).toMatchObject({ 'device.get': 6 });
  });

  it('one that is in use stays while it exists, whatever lists have', async () => {
    const given = await observed();
    given.api.addDevice({ hostname: 'victim' });
    await given.later();
    given.tailnets.retain((_, devices) => devices.filter(({ hostname }) => hostname === 'victim'));
    expect(Math.max(...(await churn(given, 8)))).toBeLessThanOrEqual(2 * COUNT);
    expect(hostnamesOf(given.tailnets.lastView('example') ?? {})).toContain('victim');
  });

  it('the bound holds where all are in use, and those stay that one list alone lacks', async () => {
    const given = await withoutRequests();
    given.tailnets.retain((_, devices) => devices);
    expect(Math.max(...(await churn(given, 6)))).toBe(2 * COUNT);
    const known = new Set(hostnamesOf(given.tailnets.lastView('example') ?? {}));
    expect(['host-4-0', 'host-5-0', 'host-3-0'].map(name => known.has(name))).toEqual([true, true, false]);
  });

  it('those of the longest list stay while others are empty', async () => {
    const given = await withoutRequests();
    await churn(given, 1);
    const json = { devices: [] };
    given.api.fail({ routes: ['devices.list'], fault: { is: 'answer', status: 200, json } });
    await given.later();
    expect((await given.later()).devices).toHaveLength(COUNT);
  });
});
