import { afterEach, describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/api/problem.ts';
import { MAX_HOSTS_OF_NAMESPACE } from '../../../../src/api/shares.ts';
import { createGuard } from '../../../../src/traffic/address-guard.ts';
import { createLookup } from '../../../../src/controllers/mesh-endpoints/inputs/lookup.ts';
import { createResolver } from '../../../../src/controllers/mesh-endpoints/inputs/external-targets.ts';
import type { ExternalTargets } from '../../../../src/controllers/mesh-endpoints/inputs/external-targets.ts';
import { startDnsServer } from '../../../support/dns/dns-server.ts';
import type { DnsServer, Zone } from '../../../support/dns/dns-server.ts';
import { eventually } from '../../../support/eventually.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

const HOST = 'db.example.com';
const [ONE, OTHER] = ['MeshEndpoints/apps/one', 'MeshEndpoints/apps/other'] as const;
const [NOISY, QUIET] = ['MeshEndpoints/noisy/web', 'MeshEndpoints/quiet/web'] as const;

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
  const lookup = createLookup({ servers: [dns.address], timeoutMs: 1000, tries: 1 });
  const targets = createResolver({ lookup, clock, guard: createGuard({ allow, refuse: [], apiServer: [] }) });
  closing.push(() => targets.close(), dns.close);
  const changed: string[] = [];
  targets.subscribe(object => changed.push(object));
  return { dns, clock, targets, changed };
}

/** Hosts of which no addresses are known. */
const hosts = (...names: readonly string[]) => new Map(names.map(name => [name, []]));
const noAnswer = (why: string) => ({
  text: `${HOST}: ${why}`,
  fix: 'correct the name, or its records in DNS',
});
const resolved = (...addresses: readonly string[]) => ({ is: 'resolved', addresses });
const isResolved = (targets: ExternalTargets, host = HOST) =>
  eventually(() => expect(targets.of(ONE, host)).toBeDefined());

describe('the resolver of externalTargets', () => {
  it('resolves a host and notifies its objects, and sorts the addresses', async () => {
    const { targets, changed } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8', '1.1.1.1'] } });
    targets.set(ONE, hosts(HOST));
    expect(targets.of(ONE, HOST)).toBeUndefined();
    await isResolved(targets);
    expect(targets.of(ONE, 'DB.Example.COM')).toEqual(resolved('1.1.1.1', '8.8.8.8'));
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
    expect(targets.of(ONE, HOST)).toEqual(resolved('8.8.8.8'));
    expect(targets.of(ONE, 'six.example.com')).toEqual(resolved('2606:4700::1', '2606:4700::1111'));
  });

  it('needs no DNS for an address', async () => {
    const { dns, targets, clock } = await resolverWith({});
    targets.set(ONE, hosts('8.8.8.8', '127.0.0.1'));
    expect(targets.of(ONE, '8.8.8.8')).toEqual(resolved('8.8.8.8'));
    expect(targets.of(ONE, '127.0.0.1')).toMatchObject({ is: 'refused' });
    expect(clock.timers).toBe(0);
    expect(dns.queries).toEqual([]);
  });

  it('uses at most 16 addresses', async () => {
    const addresses = Array.from({ length: 20 }, (_, index) => `8.8.8.${100 + index}`);
    const { targets } = await resolverWith({ [HOST]: { addresses } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    expect(targets.of(ONE, HOST)).toEqual(resolved(...addresses.slice(0, 16)));
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
    await eventually(() => expect(targets.of(ONE, HOST)).toEqual(resolved('9.9.9.9')));
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
    const stale = { ...resolved('8.8.8.8'), problem: noAnswer(why) };
    await eventually(() => expect(targets.of(ONE, HOST)).toEqual(stale));
    dns.zone[HOST] = { addresses: ['8.8.8.8'] };
    await clock.advance(5000);
    await eventually(() => expect(targets.of(ONE, HOST)).toEqual(resolved('8.8.8.8')));
  });

  it('reports why a host was never resolved, and resolves it again after 5, 10, 20, 40, 60 and 60 s', async () => {
    const { dns, targets, clock } = await resolverWith({ [HOST]: 'SERVFAIL' });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    expect(targets.of(ONE, HOST)).toEqual({
      is: 'unresolved',
      problem: noAnswer('the DNS server reports a failure (SERVFAIL)'),
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
    expect(targets.of(ONE, HOST)).toEqual(resolved('8.8.8.8'));
    expect(targets.of(ONE, 'private.example.com')).toMatchObject({ is: 'refused' });
    await eventually(() => expect(targets.of(ONE, HOST)).toHaveProperty('problem'));
    expect(targets.of(ONE, HOST)).toMatchObject(resolved('8.8.8.8'));
    dns.zone[HOST] = { addresses: ['9.9.9.9'] };
    await clock.advance(5000);
    await eventually(() => expect(targets.of(ONE, HOST)).toEqual(resolved('9.9.9.9')));
    expect(changed).toEqual([ONE, ONE]);
  });

  it.each([ONE, NOISY])('uses them whichever object of the host comes first, here %s', async first => {
    const { targets, changed } = await resolverWith({ [HOST]: 'SERVFAIL' });
    targets.set(first, hosts(HOST));
    await eventually(() => expect(targets.of(first, HOST)).toMatchObject({ is: 'unresolved' }));
    targets.set(OTHER, new Map([[HOST, ['8.8.8.8']]]));
    const problem = noAnswer('the DNS server reports a failure (SERVFAIL)');
    for (const object of [first, OTHER])
      expect(targets.of(object, HOST)).toEqual({ ...resolved('8.8.8.8'), problem });
    expect(changed).toEqual([first, first]);
  });

  it('reports a name without addresses', async () => {
    const { targets } = await resolverWith({ [HOST]: { addresses: [] } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    expect(targets.of(ONE, HOST)).toEqual({ is: 'unresolved', problem: noAnswer('the name has no address') });
  });

  it('refuses a host as soon as one of its addresses is not allowed, and uses it again once none is', async () => {
    const { dns, targets, clock } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    await isResolved(targets);
    dns.zone[HOST] = { addresses: ['8.8.8.8', '127.0.0.1'] };
    await clock.advance(60_000);
    await eventually(() => expect(targets.of(ONE, HOST)).toMatchObject({ is: 'refused' }));
    dns.zone[HOST] = 'SERVFAIL';
    await clock.advance(60_000);
    await eventually(() => expect(clock.timers).toBe(1));
    expect(targets.of(ONE, HOST)).toMatchObject({ is: 'refused' });
    dns.zone[HOST] = { addresses: ['8.8.8.8'] };
    await clock.advance(5000);
    await eventually(() => expect(targets.of(ONE, HOST)).toEqual(resolved('8.8.8.8')));
  });

  it('ends the lookups of a host that no object uses any more', async () => {
    const { dns, targets, clock, changed } = await resolverWith({ [HOST]: { addresses: ['8.8.8.8'] } });
    targets.set(ONE, hosts(HOST));
    targets.set(OTHER, hosts(HOST));
    await isResolved(targets);
    targets.set(ONE, hosts());
    expect(targets.of(ONE, HOST)).toEqual(resolved('8.8.8.8'));
    targets.set(OTHER, hosts());
    expect(targets.of(ONE, HOST)).toBeUndefined();
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
    expect(targets.of(ONE, HOST)).toBeUndefined();
    expect(changed).toEqual([ONE]);
    expect(clock.timers).toBe(1);
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
    expect(targets.of(ONE, 'silent.example.com')).toBeUndefined();
    expect(changed).toEqual([ONE]);
  });
});

/** Hosts of one object. */
const many = (count: number, domain = 'noisy.example.com') =>
  Array.from({ length: count }, (_, index) => `h${index}.${domain}`);

/** A resolver whose lookups end when a test ends them, with what it looks up at the moment. */
function pendingLookups() {
  const clock = new VirtualClock();
  const inProgress = new Map<string, () => void>();
  const answer = { is: 'found', addresses: ['8.8.8.8'], ttlMs: 3_600_000 } as const;
  const find = (host: string) => new Promise<typeof answer>(end => inProgress.set(host, () => end(answer)));
  const targets = createResolver({
    lookup: { find, close: () => {} },
    clock,
    guard: { targetProblem: () => undefined },
  });
  const changed: string[] = [];
  targets.subscribe(object => changed.push(object));
  const end = async (hosts = [...inProgress.keys()]) => {
    for (const host of hosts) {
      const answered = inProgress.get(host);
      inProgress.delete(host);
      answered?.();
    }
    await clock.settle();
  };
  return { targets, clock, inProgress, changed, end };
}

describe('lookups', () => {
  it('of a namespace that is alone are 16 at once, and the others after them', async () => {
    const { targets, inProgress, end } = pendingLookups();
    const all = many(40);
    targets.set(ONE, hosts(...all));
    for (const atOnce of [16, 16, 8]) {
      expect(inProgress.size).toBe(atOnce);
      await end();
    }
    expect(all.map(host => targets.of(ONE, host))).toEqual(all.map(() => resolved('8.8.8.8')));
  });

  it('of a namespace start at once although another one has thousands of silent hosts', () => {
    const { targets, inProgress } = pendingLookups();
    for (let object = 0; object < 10; object++)
      targets.set(`MeshEndpoints/noisy/${object}`, hosts(...many(1000, `${object}.noisy.example.com`)));
    targets.set(QUIET, hosts(...many(4, 'quiet.example.com')));
    expect([...inProgress.keys()].filter(host => host.endsWith('.quiet.example.com'))).toHaveLength(4);
  });

  it('of thirty namespaces with silent hosts leave room for those of another one', async () => {
    const { targets, inProgress, end } = pendingLookups();
    for (let index = 0; index < 30; index++)
      targets.set(`MeshEndpoints/noisy-${index}/web`, hosts(...many(100, `${index}.noisy.example.com`)));
    for (let round = 0; round < 32; round++) await end([...inProgress.keys()].slice(0, 1));
    targets.set(QUIET, hosts('quiet.example.com'));
    expect([...inProgress.keys()]).toContain('quiet.example.com');
  });

  it('of a host of several namespaces start at the first turn of any of them, once', async () => {
    const { targets, inProgress, changed, end } = pendingLookups();
    const shared = 'shared.example.com';
    targets.set(NOISY, hosts(...many(100), shared));
    targets.set(QUIET, hosts(shared));
    expect([...inProgress.keys()]).toContain(shared);
    await end([shared]);
    expect(changed).toEqual([NOISY, QUIET]);
    while (inProgress.size > 0) {
      expect([...inProgress.keys()]).not.toContain(shared);
      await end();
    }
    expect(targets.of(QUIET, shared)).toEqual(resolved('8.8.8.8'));
  });

  it('of a host go on for the namespace that still has it', async () => {
    const { targets, inProgress, end } = pendingLookups();
    const shared = 'shared.example.com';
    targets.set(NOISY, hosts(...many(100), shared));
    targets.set(QUIET, hosts(shared));
    targets.set(NOISY, hosts());
    await end([shared]);
    expect(inProgress.has(shared)).toBe(false);
    expect(targets.of(QUIET, shared)).toEqual(resolved('8.8.8.8'));
  });
});

describe('the hosts of a namespace', () => {
  const all = many(MAX_HOSTS_OF_NAMESPACE + 1);
  const [first = '', last = ''] = [all[0], all.at(-1)];
  const text = `${last} is not among the 2000 hosts that a namespace may have`;
  const problem = { text, fix: 'remove others, or use another namespace' };
  const beyond = { is: 'refused', problem };

  it('are as many as two objects can have, and those that came later are refused with the way out', () => {
    const { targets } = pendingLookups();
    targets.set(ONE, hosts(...all.slice(0, 1000)));
    targets.set(OTHER, hosts(...all.slice(1000)));
    expect(targets.of(OTHER, last)).toEqual(beyond);
    expect(all.slice(0, -1).map(host => targets.of(OTHER, host))).not.toContainEqual(beyond);
    expect(`externalTarget: ${formatProblem(problem)}`.length).toBeLessThanOrEqual(256);
  });

  it('count for each namespace by itself, and addresses do not count', async () => {
    const { targets, end, inProgress } = pendingLookups();
    targets.set(ONE, hosts(...all));
    targets.set(QUIET, hosts(last));
    targets.set(OTHER, hosts('8.8.8.8'));
    while (inProgress.size > 0) await end();
    expect(targets.of(QUIET, last)).toEqual(resolved('8.8.8.8'));
    expect(targets.of(ONE, last)).toEqual(beyond);
    expect(targets.of(OTHER, '8.8.8.8')).toEqual(resolved('8.8.8.8'));
  });

  it('stay where an older object gets another one', () => {
    const { targets } = pendingLookups();
    targets.set(ONE, hosts(first));
    targets.set(OTHER, hosts(...all.slice(1, -1)));
    targets.set(ONE, hosts(last, first));
    expect(targets.of(ONE, last)).toEqual(beyond);
    expect(targets.of(ONE, first)).not.toEqual(beyond);
  });

  it('are resolved once others are removed, and their objects are notified', async () => {
    const { targets, changed, end, inProgress } = pendingLookups();
    targets.set(ONE, hosts(...all.slice(0, -1)));
    targets.set(OTHER, hosts(last));
    expect(targets.of(OTHER, last)).toEqual(beyond);
    targets.set(ONE, hosts(...all.slice(1, -1)));
    expect(changed).toEqual([OTHER]);
    while (inProgress.size > 0) await end();
    expect(targets.of(OTHER, last)).toEqual(resolved('8.8.8.8'));
  });

  it('are after a restart those that had addresses, in whatever order objects come', () => {
    const { targets, changed } = pendingLookups();
    targets.set(OTHER, hosts(last));
    targets.set(ONE, new Map(all.slice(0, -1).map(host => [host, ['9.9.9.9']])));
    expect(targets.of(OTHER, last)).toEqual(beyond);
    expect(changed).toEqual([OTHER]);
    expect(targets.of(ONE, first)).toEqual(resolved('9.9.9.9'));
  });
});
