import { describe, expect, it } from 'vitest';
import type { CheckedEndpoint, HealthMonitor } from '../../src/health/health.ts';
import { checked, healthy, tcpCheck } from '../support/health/checks.ts';
import { refused, scriptedMonitor, success, unknown } from '../support/health/scripted-monitor.ts';

const web = 'MeshEndpoints/team/web';
const api = 'MeshEndpoints/team/api';

function setOne(
  monitor: HealthMonitor,
  endpoint: CheckedEndpoint,
  object: typeof web | typeof api = web,
): void {
  monitor.set(object, new Map([['a', endpoint]]));
}

/** Sets healthy endpoints with different addresses, whose checks have some fields replaced. */
function setMany(
  monitor: HealthMonitor,
  count: number,
  prefix = '100.64',
  fields: Parameters<typeof tcpCheck>[1] = {},
): readonly string[] {
  const addresses = Array.from(
    { length: count },
    (_, index) => `${prefix}.${Math.floor(index / 250)}.${index % 250}`,
  );
  const endpoints = addresses.map(
    address => [address, checked(tcpCheck(address, { intervalMs: 30_000, ...fields }), healthy)] as const,
  );
  monitor.set(`MeshEndpoints/team/${prefix}`, new Map(endpoints));
  return addresses;
}

/** The most of these times within any span of this length. */
function mostWithin(spanMs: number, times: readonly number[]): number {
  const sorted = [...times].sort((one, other) => one - other);
  return Math.max(
    ...sorted.map((from, index) => sorted.filter((at, each) => each >= index && at < from + spanMs).length),
  );
}

describe('start times', () => {
  it('are spread over the interval', async () => {
    const { monitor, clock, starts } = scriptedMonitor();
    setMany(monitor, 600);
    await clock.advance(30_000);
    expect(starts.length).toBeGreaterThan(580);
    expect(
      mostWithin(
        1000,
        starts.map(({ at }) => at),
      ),
    ).toBeLessThan(45);
  });

  it('are still spread after a pause of 30 s, and missed ones are skipped', async () => {
    const { monitor, clock, starts } = scriptedMonitor();
    setMany(monitor, 600);
    await clock.advance(60_000);
    await clock.skip(30_000);
    const before = starts.length;
    await clock.advance(30_000);
    const after = starts.slice(before).map(({ at }) => at);
    expect(after.length).toBeLessThan(650);
    expect(mostWithin(1000, after)).toBeLessThan(65);
  });

  it('keep to the interval while a service hangs for the whole of it', async () => {
    const { monitor, clock, starts, behave } = scriptedMonitor();
    behave('100.64.0.1', 'hang');
    setOne(monitor, checked(tcpCheck('100.64.0.1', { intervalMs: 1000, timeoutMs: 1000 }), healthy));
    await clock.advance(4200);
    expect(monitor.verdict(web, 'a')).toMatchObject({ is: 'unhealthy', error: 'timeout after 1s' });
    expect(starts.length).toBeLessThanOrEqual(5);
  });
});

describe('a check that found out nothing', () => {
  it('runs again within 5 s, until it finds out something', async () => {
    const { monitor, clock, starts, behave } = scriptedMonitor();
    behave('100.64.0.1', unknown);
    setOne(monitor, checked(tcpCheck('100.64.0.1', { intervalMs: 60_000 }), healthy));
    await clock.advance(120_000);
    const gaps = starts.slice(1).map(({ at }, index) => at - (starts[index]?.at ?? 0));
    expect(gaps.length).toBeGreaterThan(9);
    expect(Math.max(...gaps)).toBeLessThan(6000);
    behave('100.64.0.1', success);
    const before = starts.length;
    await clock.advance(300_000);
    expect(starts.length - before).toBeLessThan(8);
  });
});

describe('the limit of probes at once', () => {
  it('is never exceeded, and every check gets its turn', async () => {
    const { monitor, clock, starts, running, behave } = scriptedMonitor({ concurrency: 8 });
    for (const address of setMany(monitor, 40, '100.64', { intervalMs: 10_000, timeoutMs: 5000 }))
      behave(address, 'hang');
    let most = 0;
    for (let step = 0; step < 900; step++) {
      await clock.advance(100);
      most = Math.max(most, running.size);
    }
    expect(most).toBe(4 + 2);
    expect(new Set(starts.map(({ address }) => address)).size).toBe(40);
  });

  it('delays no tailnet while all probes of another hang', async () => {
    const { monitor, clock, starts, behave, metrics } = scriptedMonitor({ concurrency: 8 });
    for (const address of setMany(monitor, 100, '100.64', { tailnet: 'hanging' })) behave(address, 'hang');
    await clock.advance(60_000);
    const other = new Set(setMany(monitor, 100, '100.65', { tailnet: 'other' }));
    const from = clock.now();
    await clock.advance(60_000);
    const times = starts.filter(({ address, at }) => other.has(address) && at > from);
    expect(times.length).toBeGreaterThanOrEqual(195);
    expect(await metrics()).toContain('health_check_success_total{tailnet="other",type="TCP"}');
  });

  it('delays no quick endpoint while others of its tailnet are slow', async () => {
    const { monitor, clock, starts, behave } = scriptedMonitor({ concurrency: 16 });
    for (const address of setMany(monitor, 100)) behave(address, 'hang');
    await clock.advance(120_000);
    const quick = new Set(setMany(monitor, 100, '100.65'));
    const from = clock.now();
    await clock.advance(60_000);
    expect(starts.filter(({ address, at }) => quick.has(address) && at > from).length).toBeGreaterThanOrEqual(
      195,
    );
  });

  it.each([
    ['from now on', 0],
    ['for minutes already', 120_000],
  ] as const)('delays no namespace while all endpoints of another hang %s', async (_, aheadMs) => {
    const { monitor, clock, starts, behave } = scriptedMonitor({ concurrency: 64 });
    for (const address of setMany(monitor, 1000, '100.64', { namespace: 'noisy', timeoutMs: 30_000 }))
      behave(address, 'hang');
    await clock.advance(aheadMs);
    const quiet = setMany(monitor, 20, '100.65', { namespace: 'quiet', intervalMs: 2000 });
    await clock.advance(120_000);
    for (const address of quiet) {
      const times = starts.filter(start => start.address === address).map(({ at }) => at);
      const gaps = times.slice(1).map((at, index) => at - (times[index] ?? NaN));
      expect(Math.max(...gaps)).toBeLessThan(4000);
      expect(times.length).toBeGreaterThan(50);
    }
  });
});

describe('equal checks', () => {
  it('are probed once for all objects that have them', async () => {
    const { monitor, clock, starts, behave } = scriptedMonitor();
    setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy), web);
    setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy), api);
    const changed: string[] = [];
    monitor.subscribe(key => changed.push(key));
    behave('100.64.0.1', refused);
    await clock.advance(35_000);
    expect(starts.length).toBeLessThanOrEqual(4);
    expect(changed).toEqual([web, api]);
  });

  it('of two namespaces are probed for each of them, so that none waits for the turn of the other', async () => {
    const { monitor, clock, starts } = scriptedMonitor();
    setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy), web);
    setOne(monitor, checked(tcpCheck('100.64.0.1', { namespace: 'other' }), healthy), api);
    await clock.advance(10_000);
    expect(starts).toHaveLength(2);
  });

  it('go on while one object has them', async () => {
    const { monitor, clock, starts } = scriptedMonitor();
    setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy), web);
    setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy), api);
    monitor.remove(web);
    expect(monitor.verdict(web, 'a')).toBeUndefined();
    await clock.advance(20_000);
    expect(starts).toHaveLength(2);
    expect(Number(monitor.verdict(api, 'a')?.lastChecked)).toBeGreaterThan(0);
  });

  it('are about 1 s apart while one endpoint is undecided', async () => {
    const { monitor, clock, starts } = scriptedMonitor();
    setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy), web);
    await clock.advance(1);
    setOne(monitor, checked(tcpCheck('100.64.0.1')), api);
    await clock.advance(2500);
    expect(starts).toHaveLength(2);
    expect(monitor.verdict(api, 'a')).toMatchObject({ is: 'healthy' });
    expect(monitor.verdict(web, 'a')).toEqual(monitor.verdict(api, 'a'));
  });
});

describe('set', () => {
  it('of an equal check keeps the verdict, the counters and the start times', async () => {
    const { monitor, clock, starts, behave } = scriptedMonitor();
    behave('100.64.0.1', refused);
    setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy));
    for (let step = 0; step < 32; step++) {
      await clock.advance(1000);
      setOne(monitor, checked(tcpCheck('100.64.0.1'), healthy));
    }
    expect(starts.length).toBeGreaterThanOrEqual(3);
    expect(monitor.verdict(web, 'a')).toMatchObject({ is: 'unhealthy' });
  });

  it('of a changed check keeps the verdict, which may be newer than the written one', async () => {
    const { monitor, clock, behave } = scriptedMonitor();
    behave('100.64.0.1', refused);
    setOne(monitor, checked(tcpCheck('100.64.0.1')));
    await clock.advance(4000);
    setOne(monitor, checked(tcpCheck('100.64.0.1', { healthyThreshold: 5 })));
    expect(monitor.verdict(web, 'a')).toMatchObject({ is: 'unhealthy', error: 'connection refused' });
  });

  it('of another address begins with the written verdict', async () => {
    const { monitor, clock } = scriptedMonitor();
    setOne(monitor, checked(tcpCheck('100.64.0.1')));
    await clock.advance(4000);
    expect(monitor.verdict(web, 'a')).toMatchObject({ is: 'healthy' });
    setOne(monitor, checked(tcpCheck('100.64.0.2')));
    expect(monitor.verdict(web, 'a')).toEqual({ is: 'undecided', lastChecked: undefined });
  });

  it('without an endpoint ends its check and aborts the probe', async () => {
    const { monitor, clock, behave, running } = scriptedMonitor();
    behave('100.64.0.1', 'hang');
    setOne(monitor, checked(tcpCheck('100.64.0.1')));
    await clock.advance(1100);
    expect([...running]).toEqual(['100.64.0.1']);
    monitor.set(web, new Map());
    await clock.settle();
    expect([...running]).toEqual([]);
    expect(clock.timers).toBe(0);
  });

  it('ignores the result of a probe that it aborted', async () => {
    const { monitor, clock, behave } = scriptedMonitor();
    behave('100.64.0.1', 'hang');
    const check = tcpCheck('100.64.0.1', { unhealthyThreshold: 1, intervalMs: 3_600_000, timeoutMs: 2000 });
    setOne(monitor, checked(check));
    await clock.advance(1100);
    monitor.remove(web);
    setOne(monitor, checked(check, healthy));
    await clock.advance(5000);
    expect(monitor.verdict(web, 'a')).toEqual(healthy);
  });
});
