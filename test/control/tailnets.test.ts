import { afterEach, describe, expect, it } from 'vitest';
import { startControlApi } from '../../lab/control-api/control-api.ts';
import type { ControlApiOptions } from '../../lab/control-api/control-api.ts';
import { FAULTS } from '../../lab/control-api/faults.ts';
import type { Credentials, TailnetSource } from '../../src/control/control.ts';
import { openTailnets } from '../../src/control/tailnets.ts';
import { controlMetrics } from '../../src/telemetry/metrics.ts';
import { createRegistry } from '../../src/telemetry/registry.ts';
import { failureOf, inTime } from '../support/control/client.ts';
import { parseExposition, valueOf } from '../support/telemetry/exposition.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const START = Date.UTC(2026, 0, 15, 12);
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function observed(options: ControlApiOptions = {}) {
  const clock = new VirtualClock();
  const api = await startControlApi({ clock: { now: () => START + clock.now() }, ...options });
  const { id, secret } = api.addClient(['devices:core', 'auth_keys']);
  const registry = createRegistry({ metrics: controlMetrics, version: 'test' });
  const now = () => new Date(START + clock.now());
  const tailnets = openTailnets({ clock, now, random: () => 0, userAgent: 'test', metrics: registry });
  closing.push(
    () => api.close(),
    () => tailnets.close(),
  );
  const credentials: Credentials = { kind: 'oauth', clientId: id, clientSecret: secret };
  const source: TailnetSource = {
    name: 'example',
    credentials,
    intervalMs: 30_000,
    endpoint: { url: api.url, scopes: [], requestsPerSecond: 5, burst: 10 },
  };
  const observe = (changes: Partial<TailnetSource> = {}) => tailnets.observe({ ...source, ...changes });
  const later = async (changes: Partial<TailnetSource> = {}) => {
    await clock.advance(30_000);
    return await inTime(clock, observe(changes));
  };
  return { api, clock, observe, later, source, tailnets, metrics: () => registry.text() };
}

describe('10. all callers', () => {
  it('share one list of devices in each interval', async () => {
    const { api, clock, observe } = await observed();
    const many = () => Promise.all(Array.from({ length: 1000 }, () => observe()));
    const views = await many();
    expect(new Set(views.map(({ devices }) => devices)).size).toBe(1);
    await clock.advance(29_999);
    await many();
    expect(api.countByRoute()).toEqual({ probe: 1, token: 1, 'devices.list': 1, 'services.list': 1 });
    await clock.advance(1);
    await many();
    expect(api.countByRoute()).toEqual({ probe: 1, token: 1, 'devices.list': 2, 'services.list': 1 });
    api.audit({ callsPerMinute: 10 });
  });
});

describe('a list of devices', () => {
  it.each([
    ['one interval after the start of the last', 2, 4],
    ['half an interval after the end of a slow one', 4, 3],
  ])('begins %s', async (_, tookSeconds, nextSeconds) => {
    const { api, clock, observe } = await observed();
    const often = { intervalMs: 6000 };
    const gate = api.hold('devices.list', 1);
    const pending = observe(often);
    await gate.arrived;
    await clock.advance(tookSeconds * 1000);
    gate.open();
    expect((await pending).nextMs).toBe(nextSeconds * 1000);
  });

  it('is known before what it lacks, and what else is not known, was requested', async () => {
    const { api, observe, tailnets } = await observed();
    api.addDevice({ hostname: 'web-1' });
    const listed: unknown[] = [];
    tailnets.subscribe(name => listed.push(tailnets.lastView(name)));
    const gate = api.hold('services.list', 1);
    const pending = observe();
    await gate.arrived;
    expect(listed).toMatchObject([{ devices: [{ hostname: 'web-1' }], isStale: false, error: undefined }]);
    gate.open();
    expect(await pending).toMatchObject({ hasServices: true });
    expect(listed).toHaveLength(1);
  });
});

describe('a control API that was away for half an hour', () => {
  it('is found again within a minute, however long the interval is', async () => {
    const { api, clock, observe } = await observed();
    const hourly = { intervalMs: 3_600_000 };
    await observe(hourly);
    await clock.advance(3_600_000);
    const repair = api.fail({ fault: { is: 'reset', when: 'before' } });
    const awayUntil = clock.now() + 1_800_000;
    let { nextMs } = await inTime(clock, observe(hourly));
    while (clock.now() + nextMs < awayUntil) {
      await clock.advance(nextMs);
      ({ nextMs } = await inTime(clock, observe(hourly)));
    }
    repair();
    await clock.advance(nextMs);
    const view = await inTime(clock, observe(hourly));
    expect(view).toMatchObject({ isStale: false, error: undefined });
    expect(clock.now() - awayUntil).toBeLessThan(60_000);
    expect(view.nextMs).toBeGreaterThan(3_590_000);
  });
});

describe('11. a device that is missing', () => {
  it('from one list is left out where it does not exist either', async () => {
    const { api, later } = await observed();
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    api.addDevice({ hostname: 'web-2' });
    expect((await later()).devices).toHaveLength(2);
    api.removeDevice(nodeId);
    expect((await later()).devices).toMatchObject([{ hostname: 'web-2' }]);
  });

  it('is requested before those that nothing uses', async () => {
    const { api, later, tailnets } = await observed();
    tailnets.retain((_, devices) => devices.filter(({ hostname }) => hostname === 'web'));
    const ids = ['laptop', 'web'].map(hostname => api.addDevice({ hostname }).nodeId);
    await later();
    for (const id of ids) api.removeDevice(id);
    const refused = { is: 'answer', status: 403, json: { message: 'no' } } as const;
    let requests = 0;
    api.fail({ routes: ['device.get'], fault: () => (++requests > 1 ? refused : undefined) });
    expect((await later()).devices).toMatchObject([{ hostname: 'laptop' }]);
  });

  it('from all lists of some minutes stays while it exists', async () => {
    const { api, later } = await observed();
    for (let at = 0; at < 30; at++) api.addDevice({ hostname: `web-${at}` });
    await later();
    const heal = api.fail({
      routes: ['devices.list'],
      fault: { is: 'answer', status: 200, json: { devices: [] } },
    });
    for (let times = 0; times < 8; times++) expect((await later()).devices).toHaveLength(30);
    heal();
    expect((await later()).missing.size).toBe(0);
  });

  it.each([
    ['20 at least', 1, [10, 0]],
    ['as many as two fifths of the rate limit allow', 2, [6, 0]],
  ] as const)('is one of %s that are requested after a list', async (_, requestsPerSecond, expected) => {
    const { api, later, source } = await observed();
    const endpoint = { ...source.endpoint, requestsPerSecond, burst: 100 };
    const ids = Array.from({ length: 30 }, (_none, at) => api.addDevice({ hostname: `web-${at}` }).nodeId);
    await later({ endpoint });
    for (const id of ids) api.removeDevice(id);
    const left: (number | undefined)[] = [];
    while (left.at(-1) !== 0 && left.length < 9) left.push((await later({ endpoint })).devices?.length);
    expect(left).toEqual(expected);
  });

  it('stays while it cannot be requested, and holds up no other', async () => {
    const { api, later } = await observed();
    const ids = ['web-1', 'web-2'].map(hostname => api.addDevice({ hostname }).nodeId);
    expect((await later()).devices).toHaveLength(2);
    for (const id of ids) api.removeDevice(id);
    const heal = api.fail({ routes: ['device.get'], fault: FAULTS.unavailable, times: 4 });
    expect((await later()).devices).toHaveLength(1);
    heal();
    expect((await later()).devices).toHaveLength(0);
  });

  it('is left out between two lists where it is requested', async () => {
    const { api, clock, later, tailnets } = await observed();
    const ids = ['web-1', 'web-2', 'web-3'].map(hostname => api.addDevice({ hostname }).nodeId);
    await later();
    for (const id of ids.slice(1)) api.removeDevice(id);
    await inTime(clock, tailnets.confirm('example', ids.slice(0, 2)));
    expect(tailnets.lastView('example')?.devices).toMatchObject([
      { hostname: 'web-1' },
      { hostname: 'web-3' },
    ]);
  });

  it('stays where a request for it takes longer than 5 s', async () => {
    const { api, clock, later, tailnets } = await observed();
    const { nodeId } = api.addDevice({ hostname: 'web-1' });
    await later();
    api.removeDevice(nodeId);
    api.fail({ routes: ['device.get'], fault: { is: 'hang' } });
    const before = clock.now();
    await inTime(clock, tailnets.confirm('example', [nodeId]));
    expect(clock.now() - before).toBeLessThan(6000);
    expect(tailnets.lastView('example')?.devices).toHaveLength(1);
  });

  it('because it was deleted here is left out at once', async () => {
    const { api, clock, later, observe, tailnets } = await observed();
    const { nodeId } = api.addDevice({ hostname: 'web-1', tags: ['tag:mesh'] });
    api.addDevice({ hostname: 'web-2' });
    expect((await later()).devices).toHaveLength(2);
    await inTime(clock, tailnets.api('example')?.deleteDevice(nodeId) ?? Promise.resolve());
    expect((await observe()).devices).toMatchObject([{ hostname: 'web-2' }]);
    expect((await later()).devices).toHaveLength(1);
  });

  it('from a stale list and a stale response is back with the next list', async () => {
    const { api, later } = await observed({ consistency: { staleReads: { share: 0.5, byMs: 3600_000 } } });
    api.addDevice({ hostname: 'web-1' });
    api.setConsistency({});
    await later();
    api.setConsistency({ staleReads: { share: 1, byMs: 3600_000 } });
    expect((await later()).devices).toHaveLength(0);
    api.setConsistency({});
    expect((await later()).devices).toHaveLength(1);
  });
});

describe('the control API of a tailnet', () => {
  const KEY = {
    description: 'mesh-gateway 0a1b2c3d example 0',
    tags: ['tag:mesh'],
    expirySeconds: 3600,
    ephemeral: false,
    preauthorized: true,
  };

  it('uses the token and the rate limit of its lists', async () => {
    const { api, clock, observe, source, tailnets, metrics } = await observed();
    const endpoint = { ...source.endpoint, requestsPerSecond: 1, burst: 4 };
    await observe({ endpoint });
    const control = tailnets.api('example');
    const key = await inTime(clock, control?.createKey(KEY) ?? Promise.reject(new Error('no API')));
    await inTime(clock, control?.revokeKey(key) ?? Promise.reject(new Error('no API')));
    expect(api.countByRoute()).toMatchObject({ token: 1, 'keys.create': 1, 'keys.delete': 1 });
    const throttled = parseExposition(await metrics());
    expect(valueOf(throttled, 'mesh_gateway_control_throttled_total', { tailnet: 'example' })).toBe(2);
    api.audit();
  });

  it('exists while the tailnet is observed', async () => {
    const { observe, tailnets } = await observed();
    expect(tailnets.api('example')).toBeUndefined();
    await observe();
    expect(tailnets.api('example')).toBeDefined();
    expect(tailnets.api('other')).toBeUndefined();
    tailnets.forget('example');
    expect(tailnets.api('example')).toBeUndefined();
    expect(tailnets.lastView('example')).toBeUndefined();
    const { nextMs: _, ...view } = await observe();
    expect(tailnets.lastView('example')).toEqual(view);
    tailnets.close();
    expect(tailnets.api('example')).toBeUndefined();
  });

  it('fails with a ControlError where no credentials have worked', async () => {
    const { observe, tailnets } = await observed();
    await observe({ credentials: undefined });
    expect(await failureOf(tailnets.api('example')?.devices() ?? Promise.resolve())).toMatchObject({
      reason: 'CredentialsInvalid',
    });
  });

  it('fails with another error once it is closed', async () => {
    const { observe, source, tailnets } = await observed();
    await observe();
    const forgotten = tailnets.api('example');
    tailnets.forget('example');
    await expect(forgotten?.devices()).rejects.toThrow('the connections to the control API are closed');
    await observe();
    const replaced = tailnets.api('example');
    await observe({ endpoint: { ...source.endpoint, burst: 20 } });
    await expect(replaced?.devices()).rejects.toThrow('the connections to the control API are closed');
    expect((await tailnets.api('example')?.devices()) ?? []).toEqual([]);
  });
});

describe('16. while the API is away', () => {
  it('devices stay as they were, stale and with their age', async () => {
    const { api, clock, later, metrics } = await observed();
    api.addDevice({ hostname: 'web-1' });
    await later();
    const heal = api.fail({ fault: FAULTS.unavailable });
    const view = await later();
    expect(view).toMatchObject({ isStale: true, devices: [{ hostname: 'web-1' }] });
    expect(view.error).toMatchObject({ reason: 'Unavailable' });
    expect(START + clock.now() - Number(view.lastSuccess)).toBeGreaterThanOrEqual(30_000);
    const families = parseExposition(await metrics());
    const labels = { tailnet: 'example' };
    expect(valueOf(families, 'mesh_gateway_control_snapshot_age_seconds', labels)).toBeGreaterThanOrEqual(30);
    expect(valueOf(families, 'mesh_gateway_tailnet_devices', { ...labels, state: 'online' })).toBe(1);
    heal();
    expect(await later()).toMatchObject({ isStale: false, error: undefined });
  });
});

describe('18. what a control server supports', () => {
  it.each([
    ['vendor', true],
    ['headscale', false],
  ] as const)('is known after the first list, of %s VIP services: %s', async (dialect, expected) => {
    const { observe } = await observed({ dialect });
    expect((await observe()).hasServices).toBe(expected);
  });

  const RESPONSES: readonly (readonly [string, object, boolean | undefined])[] = [
    ['lacks the scope', { status: 403, json: { message: 'no' } }, true],
    [
      'does not show whether the scope or the feature is missing',
      { status: 404, json: { message: 'not found' } },
      undefined,
    ],
    ['does not know the route', { status: 404, text: '404 page not found' }, false],
    ['does not know the method', { status: 405 }, false],
  ];
  it.each(RESPONSES)('is detected by a response that %s', async (_, answer, expected) => {
    const { api, observe } = await observed();
    api.fail({ routes: ['services.list'], fault: { is: 'answer', status: 200, ...answer } });
    const view = await observe();
    expect([view.hasServices, view.error]).toEqual([expected, undefined]);
  });

  it.each([
    ['Vendor', 'headscale', true],
    ['Headscale', 'vendor', false],
  ] as const)('is not detected where the dialect is given: %s', async (given, dialect, expected) => {
    const { api, observe, source } = await observed({ dialect });
    expect((await observe({ endpoint: { ...source.endpoint, dialect: given } })).hasServices).toBe(expected);
    expect(api.countByRoute()['services.list']).toBeUndefined();
  });

  it('is detected once an hour', async () => {
    const { api, clock, observe, later } = await observed();
    await later();
    await later();
    expect(api.countByRoute()['services.list']).toBe(1);
    await clock.advance(3_600_000);
    await inTime(clock, observe());
    expect(api.countByRoute()['services.list']).toBe(2);
  });

  it('is detected again with the next list after a failure, which is no failure of the list', async () => {
    const { api, observe, later } = await observed();
    api.fail({ routes: ['services.list'], times: 1, fault: FAULTS.unavailable });
    expect(await observe()).toMatchObject({ hasServices: undefined, error: undefined, isStale: false });
    expect(await later()).toMatchObject({ hasServices: true });
    expect(api.countByRoute()['services.list']).toBe(2);
  });
});

describe('a control API that does not respond', () => {
  it('holds its callers for 5 seconds, and is known to be unreachable later', async () => {
    const { api, clock, observe } = await observed();
    const heal = api.fail({ fault: { is: 'hang' } });
    const first = await inTime(clock, observe());
    expect(clock.now()).toBeLessThan(6000);
    expect(first).toMatchObject({ devices: undefined, error: { reason: 'Unreachable' }, nextMs: 5000 });
    expect(await observe()).toMatchObject({ error: { message: 'no response yet' } });
    await clock.advance(10_000);
    expect((await observe()).error?.message).toBe('no response within 15 s');
    heal();
    await clock.advance(30_000);
    expect(await inTime(clock, observe())).toMatchObject({ devices: [], error: undefined });
  });

  it('leaves what was known before, until the list has failed', async () => {
    const { api, clock, observe, later } = await observed();
    api.addDevice({ hostname: 'web-1' });
    await later();
    api.fail({ routes: ['devices.list'], fault: FAULTS.unavailable, times: 4 });
    const failed = await later();
    expect(failed.error).toMatchObject({ reason: 'Unavailable' });
    api.fail({ fault: { is: 'hang' } });
    await clock.advance(30_000);
    const pending = await inTime(clock, observe());
    expect(pending).toMatchObject({ error: failed.error, devices: [{ hostname: 'web-1' }], nextMs: 5000 });
  });
});

describe('workload identity', () => {
  it('exchanges a fresh token of the ServiceAccount each time', async () => {
    const { api, clock, observe } = await observed();
    let issued = 0;
    const idToken = () => {
      issued++;
      return Promise.resolve(`jwt-${issued}`);
    };
    api.fail({
      routes: ['token-exchange'],
      times: 1,
      fault: { is: 'answer', status: 401, json: { message: 'jwt is not trusted' } },
    });
    const credentials: Credentials = { kind: 'federated', clientId: 'k1', audience: 'api', idToken };
    const view = await inTime(clock, observe({ credentials }));
    expect(view.error).toMatchObject({ reason: 'CredentialsInvalid' });
    expect(view.error?.message).toContain('jwt is not trusted');
    await clock.advance(30_000);
    await inTime(clock, observe({ credentials }));
    expect(issued).toBe(2);
    expect(api.countByRoute()['token-exchange']).toBe(2);
  });

  it('of another audience replaces the one before', async () => {
    const { api, clock, observe } = await observed();
    const exchanged = { access_token: 'granted', token_type: 'Bearer' };
    api.fail({ routes: ['token-exchange'], fault: { is: 'answer', status: 200, json: exchanged } });
    const issued: string[] = [];
    for (const audience of ['one', 'other', 'other']) {
      const idToken = () => Promise.resolve(issued.push(audience).toString());
      await inTime(clock, observe({ credentials: { kind: 'federated', clientId: 'k1', audience, idToken } }));
    }
    expect(api.countByRoute()['token-exchange']).toBeGreaterThanOrEqual(2);
    expect(issued).toContain('other');
  });

  it('that cannot get such a token reports the error', async () => {
    const { observe } = await observed();
    const idToken = () => Promise.reject(new Error('forbidden'));
    const { error } = await observe({
      credentials: { kind: 'federated', clientId: 'k1', audience: 'api', idToken },
    });
    expect(error).toMatchObject({ reason: 'CredentialsInvalid' });
    expect(error?.message).toContain("no token of the operator's ServiceAccount: forbidden");
  });
});
