import { afterEach, describe, expect, it } from 'vitest';
import { createGuard } from '../../src/traffic/address-guard.ts';
import { createLookup } from '../../src/external-targets/lookup.ts';
import type { ExternalTargets } from '../../src/external-targets/external-targets.ts';
import { createResolver } from '../../src/external-targets/resolver.ts';
import { startDnsServer } from '../support/dns/dns-server.ts';
import type { DnsServer, Zone } from '../support/dns/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const HOST = 'db.example.com';
const [ONE, OTHER] = ['MeshEndpoints/apps/one', 'MeshEndpoints/apps/other'] as const;

type Scene = {
  readonly dns: DnsServer;
  readonly clock: VirtualClock;
  readonly targets: ExternalTargets;
  /** The objects of which listeners were notified. */
  readonly changed: string[];
};

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function resolverWith(zone: Zone, allow: readonly string[] = []): Promise<Scene> {
  const dns = await startDnsServer(zone);
  const clock = new VirtualClock();
  const lookup = createLookup({ servers: [dns.address], timeoutMs: 100, tries: 1 });
  const targets = createResolver({ lookup, clock, guard: createGuard({ allow, refuse: [], apiServer: [] }) });
  closing.push(() => targets.close(), dns.close);
  const changed: string[] = [];
  targets.subscribe(object => changed.push(object));
  return { dns, clock, targets, changed };
}

/** Hosts of which no addresses are known. */
const hosts = (...names: readonly string[]) => new Map(names.map(name => [name, []]));
const resolved = (...addresses: readonly string[]) => ({ is: 'resolved', addresses });
const isResolved = (targets: ExternalTargets, host = HOST) =>
  eventually(() => expect(targets.of(host)).toBeDefined());

describe('the resolver of externalTargets', () => {
  it('resolves a host and notifies its objects, and sorts the addresses', async () => {
    const { targets, changed } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8', '1.1.1.1'] } });
    targets.set(ONE, hosts(HOST));
    expect(targets.of(HOST)).toBeUndefined();
    await isResolved(targets);
    expect(targets.of('DB.Example.COM')).toEqual(resolved('1.1.1.1', '8.8.8.8'));
    expect(changed).toEqual([ONE]);
  });

  it('looks a host up once for all objects', async () => {
    const { dns, targets } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    targets.set(OTHER, hosts(HOST.toUpperCase(), HOST));
    await isResolved(targets);
    targets.set(OTHER, hosts(HOST));
    expect(dns.queries).toEqual([`A ${HOST}`]);
  });

  it('uses IPv6 addresses only of a host without an IPv4 address', async () => {
    const { targets } = await resolverWith({
      [HOST]: { addresses: ['2606:4700:0:0::1111', '8.8.8.8'] },
      'six.example.com': { addresses: ['2606:4700:0:0:0::1111', '2606:4700::1'] },
    });
    targets.set(ONE, hosts(HOST, 'six.example.com'));
    await isResolved(targets);
    await isResolved(targets, 'six.example.com');
    expect(targets.of(HOST)).toEqual(resolved('8.8.8.8'));
    expect(targets.of('six.example.com')).toEqual(resolved('2606:4700::1', '2606:4700::1111'));
  });

  it('needs no DNS for an address', async () => {
    const { dns, targets, clock } = await resolverWith({});
    targets.set(ONE, hosts('8.8.8.8', '127.0.0.1'));
    expect(targets.of('8.8.8.8')).toEqual(resolved('8.8.8.8'));
    expect(targets.of('127.0.0.1')).toMatchObject({ is: 'refused' });
    expect(clock.timers).toBe(0);
    expect(dns.queries).toEqual([]);
  });

  it('uses at most 16 addresses', async () => {
    const addresses = Array.from({ length: 20 }, (_, index) => `8.8.8.${100 + index}`);
    const { targets } = await resolverWith({ [HOST]: { addresses } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    expect(targets.of(HOST)).toEqual(resolved(...addresses.slice(0, 16)));
  });

  it.each([
    { ttl: 0, afterMs: 5000 },
    { ttl: 30, afterMs: 30_000 },
    { ttl: 86_400, afterMs: 3_600_000 },
  ])('follows a changed answer after its TTL of $ttl s, from 5 s to an hour', async ({ ttl, afterMs }) => {
    const { dns, targets, clock, changed } = await resolverWith({ [HOST]: { ttl, addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    dns.zone[HOST] = { ttl, addresses: ['9.9.9.9'] };
    await clock.advance(afterMs - 1);
    expect(dns.queries).toHaveLength(1);
    await clock.advance(1);
    await eventually(() => expect(targets.of(HOST)).toEqual(resolved('9.9.9.9')));
    expect(changed).toEqual([ONE, ONE]);
  });

  it('notifies of no answer that is the same', async () => {
    const { dns, targets, clock, changed } = await resolverWith({
      [HOST]: { addresses: ['8.8.8.8', '1.1.1.1'] },
    });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    dns.zone[HOST] = { addresses: ['1.1.1.1', '8.8.8.8'] };
    await clock.advance(60_000);
    await eventually(() => expect(clock.timers).toBe(1));
    expect(dns.queries).toHaveLength(2);
    expect(changed).toEqual([ONE]);
  });

  it.each([
    ['NXDOMAIN', 'no such name'],
    ['SERVFAIL', 'the DNS server reports a failure (SERVFAIL)'],
    ['silent', 'the DNS server did not answer in time'],
  ] as const)('keeps the last addresses while lookups fail with %s', async (failure, why) => {
    const { dns, targets, clock } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    dns.zone[HOST] = failure;
    await clock.advance(60_000);
    const stale = { ...resolved('8.8.8.8'), problem: `${HOST}: ${why}` };
    await eventually(() => expect(targets.of(HOST)).toEqual(stale));
    dns.zone[HOST] = { addresses: ['8.8.8.8'] };
    await clock.advance(5000);
    await eventually(() => expect(targets.of(HOST)).toEqual(resolved('8.8.8.8')));
  });

  it('reports why a host was never resolved, and resolves it again after 5, 10, 20, 40, 60 and 60 s', async () => {
    const { dns, targets, clock } = await resolverWith({ [HOST]: 'SERVFAIL' });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    expect(targets.of(HOST)).toEqual({
      is: 'unresolved',
      problem: `${HOST}: the DNS server reports a failure (SERVFAIL)`,
    });
    const times = [];
    for (let second = 1; second <= 195; second++) {
      const before = dns.queries.length;
      await clock.advance(1000);
      await eventually(() => expect(clock.timers).toBe(1));
      if (dns.queries.length > before) times.push(second);
    }
    expect(times).toEqual([5, 15, 35, 75, 135, 195]);
  });

  it('uses the addresses of before until a lookup succeeds, if they are still allowed', async () => {
    const { dns, targets, clock, changed } = await resolverWith({
      [HOST]: 'SERVFAIL',
      'private.example.com': 'SERVFAIL',
    });
    targets.set(
      ONE,
      new Map([
        [HOST, ['8.8.8.8']],
        ['private.example.com', ['10.0.0.1']],
      ]),
    );
    expect(targets.of(HOST)).toEqual(resolved('8.8.8.8'));
    expect(targets.of('private.example.com')).toMatchObject({ is: 'refused' });
    await eventually(() => expect(targets.of(HOST)).toHaveProperty('problem'));
    expect(targets.of(HOST)).toMatchObject(resolved('8.8.8.8'));
    dns.zone[HOST] = { addresses: ['9.9.9.9'] };
    await clock.advance(5000);
    await eventually(() => expect(targets.of(HOST)).toEqual(resolved('9.9.9.9')));
    expect(changed).toEqual([ONE, ONE]);
  });

  it('reports a name without addresses', async () => {
    const { targets } = await resolverWith({ [HOST]: { addresses: [] } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    expect(targets.of(HOST)).toEqual({ is: 'unresolved', problem: `${HOST}: the name has no address` });
  });

  it('refuses a host as soon as one of its addresses is not allowed, and uses it again once none is', async () => {
    const { dns, targets, clock } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    dns.zone[HOST] = { addresses: ['8.8.8.8', '127.0.0.1'] };
    await clock.advance(60_000);
    await eventually(() => expect(targets.of(HOST)).toMatchObject({ is: 'refused' }));
    dns.zone[HOST] = 'SERVFAIL';
    await clock.advance(60_000);
    await eventually(() => expect(clock.timers).toBe(1));
    expect(targets.of(HOST)).toMatchObject({ is: 'refused' });
    dns.zone[HOST] = { addresses: ['8.8.8.8'] };
    await clock.advance(5000);
    await eventually(() => expect(targets.of(HOST)).toEqual(resolved('8.8.8.8')));
  });

  it('ends the lookups of a host that no object uses any more', async () => {
    const { dns, targets, clock, changed } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    targets.set(OTHER, hosts(HOST));
    await isResolved(targets);
    targets.set(ONE, hosts());
    expect(targets.of(HOST)).toEqual(resolved('8.8.8.8'));
    targets.set(OTHER, hosts());
    expect(targets.of(HOST)).toBeUndefined();
    await clock.advance(3_600_000);
    expect(dns.queries).toHaveLength(1);
    expect(changed).toEqual([ONE, OTHER]);
  });

  it('ignores the answer about a host that is not used any more', async () => {
    const { targets, clock, changed, dns } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    targets.set(ONE, hosts());
    targets.set(ONE, hosts('other.example.com'));
    await isResolved(targets, 'other.example.com');
    await eventually(() => expect(dns.queries).toContain(`A ${HOST}`));
    expect(targets.of(HOST)).toBeUndefined();
    expect(changed).toEqual([ONE]);
    expect(clock.timers).toBe(1);
  });

  it('looks up 16 hosts at once, and the others after them', async () => {
    const all = Array.from({ length: 40 }, (_, index) => `h${index}.example.com`);
    const inProgress: (() => void)[] = [];
    const answer = { is: 'found', addresses: ['8.8.8.8'], ttlMs: 60_000 } as const;
    const find = () => new Promise<typeof answer>(resolve => inProgress.push(() => resolve(answer)));
    const clock = new VirtualClock();
    const lookup = { find, close: () => {} };
    const targets = createResolver({ lookup, clock, guard: { targetProblem: () => undefined } });
    targets.set(ONE, hosts(...all));
    for (const atOnce of [16, 16, 8]) {
      expect(inProgress).toHaveLength(atOnce);
      for (const end of inProgress.splice(0)) end();
      await clock.settle();
    }
    expect(all.map(host => targets.of(host))).toEqual(all.map(() => resolved('8.8.8.8')));
  });

  it('ends lookups and timers when it is closed', async () => {
    const { targets, clock, changed } = await resolverWith({
      [HOST]: { addresses: ['8.8.8.8'] },
      'silent.example.com': 'silent',
    });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    targets.set(ONE, hosts(HOST, 'silent.example.com'));
    targets.close();
    await clock.settle();
    expect(clock.timers).toBe(0);
    expect(targets.of('silent.example.com')).toBeUndefined();
    expect(changed).toEqual([ONE]);
  });
});
