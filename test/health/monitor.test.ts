import { describe, expect, it } from 'vitest';
import { checked, healthy, tcpCheck } from '../support/health/checks.ts';
import { refused, scriptedMonitor, success, unknown } from '../support/health/scripted-monitor.ts';
import type { ScriptedMonitor } from '../support/health/scripted-monitor.ts';

const object = 'MeshEndpoints/team/web';

it('an endpoint without a written verdict is undecided, and healthy after two successes about 1 s apart', async () => {
  const { monitor, clock, starts } = scriptedMonitor();
  monitor.set(object, new Map([['a', checked(tcpCheck('100.64.0.1'))]]));
  expect(monitor.verdict(object, 'a')).toEqual({ is: 'undecided', lastChecked: undefined });
  await clock.advance(2500);
  expect(monitor.verdict(object, 'a')).toMatchObject({ is: 'healthy' });
  const [first = NaN, second = NaN] = starts.map(({ at }) => at);
  expect(second - first).toBeGreaterThan(900);
  expect(second - first).toBeLessThan(1100);
});

it('a decided endpoint is checked once in each interval', async () => {
  const { monitor, clock, starts } = scriptedMonitor();
  monitor.set(object, new Map([['a', checked(tcpCheck('100.64.0.1'), healthy)]]));
  await clock.advance(600_000);
  const intervals = starts.slice(1).map(({ at }, index) => at - (starts[index]?.at ?? NaN));
  expect(intervals.filter(ms => ms < 9500 || ms > 10_500)).toEqual([]);
  expect(starts).toHaveLength(60);
});

it('a written verdict holds until failures in a row reach the threshold, and listeners are called once', async () => {
  const { monitor, clock, behave } = scriptedMonitor();
  const changed: string[] = [];
  monitor.subscribe(key => changed.push(key));
  behave('100.64.0.1', refused);
  monitor.set(object, new Map([['a', checked(tcpCheck('100.64.0.1'), healthy)]]));
  await clock.advance(20_000);
  expect(monitor.verdict(object, 'a')).toMatchObject({ is: 'healthy' });
  expect(changed).toEqual([]);
  await clock.advance(12_000);
  expect(monitor.verdict(object, 'a')).toMatchObject({ is: 'unhealthy', error: 'connection refused' });
  await clock.advance(60_000);
  expect(changed).toEqual([object]);
});

it('another error in as many failures in a row as the threshold calls listeners once; the time of a check never', async () => {
  const { monitor, clock, behave } = scriptedMonitor();
  behave('100.64.0.1', refused);
  monitor.set(object, new Map([['a', checked(tcpCheck('100.64.0.1'))]]));
  await clock.advance(10_000);
  const changed: string[] = [];
  monitor.subscribe(key => changed.push(key));
  await clock.advance(60_000);
  expect(clock.now() - Number(monitor.verdict(object, 'a')?.lastChecked)).toBeLessThan(11_000);
  behave('100.64.0.1', { is: 'failure', error: 'got 503, expected 200', code: 'HTTP_503' });
  await clock.advance(20_000);
  expect(monitor.verdict(object, 'a')).toMatchObject({ error: 'connection refused' });
  expect(changed).toEqual([]);
  await clock.advance(40_000);
  expect(monitor.verdict(object, 'a')).toMatchObject({ error: 'got 503, expected 200' });
  expect(changed).toEqual([object]);
});

it('unknown results change nothing', async () => {
  const { monitor, clock, behave } = scriptedMonitor();
  behave('100.64.0.1', unknown);
  behave('100.64.0.2', unknown);
  const endpoints = [
    ['a', checked(tcpCheck('100.64.0.1'), healthy)],
    ['b', checked(tcpCheck('100.64.0.2'))],
  ] as const;
  monitor.set(object, new Map(endpoints));
  await clock.advance(120_000);
  expect(monitor.verdict(object, 'a')).toEqual(healthy);
  expect(monitor.verdict(object, 'b')).toEqual({ is: 'undecided', lastChecked: undefined });
  behave('100.64.0.2', success);
  await clock.advance(3000);
  expect(monitor.verdict(object, 'b')).toMatchObject({ is: 'healthy' });
});

it('unknown results of a tailnet are logged once, and at most once a minute while they come and go', async () => {
  const { monitor, clock, behave, lines } = scriptedMonitor();
  const check = tcpCheck('100.64.0.1', { intervalMs: 1000 });
  monitor.set(object, new Map([['a', checked(check, healthy)]]));
  for (let minute = 0; minute < 10; minute++) {
    behave('100.64.0.1', unknown);
    await clock.advance(30_000);
    behave('100.64.0.1', success);
    await clock.advance(30_000);
  }
  const logged = lines().filter(({ level }) => level !== 'debug');
  expect(logged.length).toBeLessThanOrEqual(10);
  expect(logged.slice(0, 2)).toMatchObject([
    { level: 'info', msg: 'health checks of a tailnet have no results', reason: 'no mesh pod is ready' },
    { level: 'info', msg: 'health checks of a tailnet have results again', tailnet: 'example' },
  ]);
});

it('results are counted by tailnet and type, and no metric or log line has a header of a check', async () => {
  const { monitor, clock, behave, lines, metrics } = scriptedMonitor();
  const settings = {
    type: 'HTTP',
    host: 'web',
    path: '/',
    expectedStatus: 200,
    tls: undefined,
    headers: [['X-Probe', 'hidden-value']],
  } as const;
  const addresses = ['100.64.0.1', '100.64.0.2', '100.64.0.3'];
  for (const [index, result] of [success, refused, unknown].entries()) behave(addresses[index] ?? '', result);
  const entries = addresses.map(
    address => [address, checked(tcpCheck(address, { settings, intervalMs: 5000 }), healthy)] as const,
  );
  monitor.set(object, new Map(entries));
  await clock.advance(4_990);
  const text = await metrics();
  for (const name of ['health_check_success', 'health_check_failure', 'mesh_gateway_health_check_unknown'])
    expect(text).toContain(`${name}_total{tailnet="example",type="HTTP"} 1\n`);
  expect(text).toContain('health_check_duration_seconds_count{type="HTTP"} 2\n');
  expect(text).toContain('mesh_gateway_health_check_start_lag_seconds_count 3\n');
  expect(lines()).toMatchObject([{ level: 'debug' }, { level: 'info' }]);
  expect(text + JSON.stringify(lines())).not.toContain('hidden-value');
});

it('close ends all checks and leaves no timer', async () => {
  const { monitor, clock, behave, running } = scriptedMonitor();
  behave('100.64.0.1', 'hang');
  const endpoints = [
    ['a', checked(tcpCheck('100.64.0.1'))],
    ['b', checked(tcpCheck('100.64.0.2'), healthy)],
  ] as const;
  monitor.set(object, new Map(endpoints));
  await clock.advance(1100);
  expect([...running]).toEqual(['100.64.0.1']);
  monitor.close();
  await clock.settle();
  expect([...running]).toEqual([]);
  expect(clock.timers).toBe(0);
  expect(monitor.verdict(object, 'a')).toBeUndefined();
});

describe('endpoints that flap', () => {
  const quick = { intervalMs: 1000, healthyThreshold: 1, unhealthyThreshold: 1 };
  const flapping = Array.from({ length: 1000 }, (_, index) => `100.65.${index >> 8}.${index & 255}`);

  /** Endpoints of one object whose services alternate for a number of seconds. */
  async function flap(scripted: ScriptedMonitor, seconds: number) {
    const { monitor, clock, behave } = scripted;
    const checks = [...flapping, '100.64.0.1'].map(
      address => [address, checked(tcpCheck(address, quick), healthy)] as const,
    );
    monitor.set(object, new Map(checks));
    for (let second = 0; second < seconds; second++) {
      for (const address of flapping) behave(address, second % 2 === 0 ? refused : success);
      await clock.advance(1000);
    }
  }

  it('stay unhealthy, and are published again once they settle', async () => {
    const scripted = scriptedMonitor();
    const { monitor, clock } = scripted;
    await flap(scripted, 40);
    const verdicts = () => flapping.map(name => monitor.verdict(object, name));
    await clock.advance(10_000);
    expect(verdicts().filter(verdict => verdict?.is !== 'unhealthy')).toEqual([]);
    expect(verdicts()[0]?.error).toBe('flapping, unhealthy for up to 30s: connection refused');
    await clock.advance(25_000);
    expect(verdicts().filter(verdict => verdict?.is !== 'healthy')).toEqual([]);
  });

  it('call listeners at most once a second for their object, and another endpoint waits at most 1 s', async () => {
    const scripted = scriptedMonitor();
    const { monitor, clock, behave } = scripted;
    const calls: { readonly at: number; readonly seen: string | undefined }[] = [];
    monitor.subscribe(() => calls.push({ at: clock.now(), seen: monitor.verdict(object, '100.64.0.1')?.is }));
    await flap(scripted, 5);
    behave('100.64.0.1', refused);
    const from = clock.now();
    await flap(scripted, 5);
    const gaps = calls.slice(1).map(({ at }, index) => at - (calls[index]?.at ?? NaN));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1000);
    const seenAt = calls.find(({ seen }) => seen === 'unhealthy')?.at ?? NaN;
    expect(seenAt - from).toBeLessThanOrEqual(2 * 1000 + 100);
  });

  it('keep their hold when their check changes', async () => {
    const scripted = scriptedMonitor();
    const { monitor, clock } = scripted;
    await flap(scripted, 30);
    const [address = ''] = flapping;
    monitor.set(object, new Map([[address, checked(tcpCheck(address, { ...quick, timeoutMs: 500 }))]]));
    await clock.advance(5000);
    expect(monitor.verdict(object, address)).toMatchObject({ is: 'unhealthy' });
    await clock.advance(30_000);
    expect(monitor.verdict(object, address)).toMatchObject({ is: 'healthy' });
  });
});
