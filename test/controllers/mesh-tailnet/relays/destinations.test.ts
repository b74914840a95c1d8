import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDestinations } from '../../../../src/api/front.ts';
import type { Ref } from '../../../../src/api/key.ts';
import { MAX_CALLERS } from '../../../../src/api/shares.ts';
import {
  destinationsFrom,
  destinationsWithin,
} from '../../../../src/controllers/mesh-tailnet/relays/destinations.ts';
import type { TailnetDestinations } from '../../../../src/controllers/mesh-tailnet/relays/destinations.ts';
import type { Input } from '../../../../src/controllers/mesh-tailnet/relays/gather.ts';
import { NO_PLAN, plan } from '../../../../src/controllers/mesh-tailnet/relays/plan.ts';
import { sharedIndexes } from '../../../../src/store/indexes.ts';
import type { ReadResources } from '../../../../src/store/resources.ts';
import { trafficIndexes } from '../../../../src/store/traffic/resources.ts';
import { createGuard } from '../../../../src/traffic/address-guard.ts';
import { frontInput } from '../../../support/controllers/mesh-tailnet/relays/front.ts';
import { FULL_DESTINATIONS, fullInput } from '../../../support/controllers/mesh-tailnet/relays/full.ts';
import { named } from '../../../support/declared.ts';
import { endpoint, meshEndpoints, meshTailnet } from '../../../support/objects.ts';
import { runs } from '../../../support/runs.ts';
import { createMemory } from '../../../support/store/memory.ts';
import type { Memory } from '../../../support/store/memory.ts';
import { derivedFrom } from '../../../support/store/traffic.ts';
import { namespaceObject } from '../../../support/traffic/objects.ts';

const GUARD = createGuard({ allow: [], refuse: ['100.88.0.0/16'], apiServer: [] });
const DOMAINS = ['example.ts.net', 'other.ts.net'];

/** The most bytes of the destinations of a tailnet. */
const MAX_LENGTH = 480 * 1024;

/** The most bytes of the data of a ConfigMap. */
const MAX_DATA = 1024 * 1024;

/** Reads the destinations of a tailnet, which are kept between two reads. */
function destinationsIn(read: ReadResources): (domain: string) => TailnetDestinations {
  const { tracking, traffic } = derivedFrom(read, { guard: GUARD });
  const derived = destinationsFrom(tracking, traffic);
  for (const domain of DOMAINS) derived.watch(domain, { invalidated: () => undefined });
  return domain => derived.read(domain);
}

type Change = (memory: Memory) => Promise<void> | void;

const NAMES = ['team-a/web', 'team-a/api', 'team-b/web', 'team-c/web'];

const endpoints = fc
  .uniqueArray(
    fc.record({
      meshIP: fc.constantFrom(
        '100.64.0.1',
        '100.64.0.2',
        '100.88.0.1',
        'fd7a:115c:a1e0::1',
        'FD7A:115C:A1E0:0::1',
      ),
      meshFQDN: fc.constantFrom('web.example.ts.net', 'web.other.ts.net', 'db.example.ts.net'),
      port: fc.constantFrom(80, 443, 8080),
      protocol: fc.constantFrom('HTTP', 'TCP', 'UDP'),
      isExternal: fc.boolean(),
    }),
    {
      selector: ({ meshIP, port }) => `${meshIP.toLowerCase().replace('0::', ':')} ${port}`,
      minLength: 1,
      maxLength: 6,
    },
  )
  .map(list =>
    list.map(({ isExternal, ...fields }, at) =>
      endpoint({ ...fields, name: `e${at}`, ...(isExternal && { externalTarget: 'web.example.com:443' }) }),
    ),
  );

const names = fc.constantFrom(...NAMES);
const domains = fc.constantFrom(...DOMAINS);

const changes: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(names, domains, endpoints).map(
      ([name, tailnet, list]): Change =>
        ({ author }) =>
          author.put(named(meshEndpoints({ tailnet, endpoints: list }), name)),
    ),
  },
  names.map(
    (name): Change =>
      ({ author }) =>
        author.remove(refOf('MeshEndpoints', name)),
  ),
  fc.tuple(names, domains).map(([name, tailnet]): Change => ({ observe }) => {
    const metadata = { deletionTimestamp: '2026-01-15T12:00:00Z', finalizers: ['example.com/held'] };
    observe(named(meshEndpoints({ tailnet }), name, metadata));
  }),
  fc
    .tuple(fc.constantFrom('t', 'u'), domains, fc.constantFrom('All', 'Selector'))
    .map(([name, tailnet, from]): Change => {
      const selector = { selector: { matchLabels: { mesh: 'yes' } } };
      const allowedNamespaces = { from, ...(from === 'Selector' && selector) };
      return ({ author }) => author.put(named(meshTailnet({ tailnet, allowedNamespaces }), name));
    }),
  fc.constantFrom('t', 'u').map(
    (name): Change =>
      ({ author }) =>
        author.remove(refOf('MeshTailnet', name)),
  ),
  fc.tuple(fc.constantFrom('team-a', 'team-b', 'team-c'), fc.constantFrom('yes', 'no')).map(
    ([name, mesh]): Change =>
      ({ author }) =>
        author.put(namespaceObject(name, { mesh })),
  ),
);

function refOf<K extends 'MeshEndpoints' | 'MeshTailnet'>(kind: K, name: string): Ref<K> {
  const [last = '', namespace = ''] = name.split('/').reverse();
  return { kind, namespace, name: last };
}

async function startMemory(...objects: readonly object[]): Promise<Memory> {
  const memory = createMemory([...trafficIndexes, ...sharedIndexes], objects);
  await memory.start();
  return memory;
}

describe('the destinations of tailnets after any changes', () => {
  it('are those that are computed from nothing, and of valid lines', async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(changes, { minLength: 10, maxLength: 40 }), async history => {
        const memory = await startMemory(named(meshTailnet(), 't'));
        const kept = destinationsIn(memory.read);
        for (const change of history) {
          await change(memory);
          const computed = destinationsIn(memory.read);
          for (const domain of DOMAINS) {
            expect(kept(domain)).toEqual(computed(domain));
            const { text } = kept(domain);
            seen.add(text);
            parseDestinations(text, ignored => expect(ignored).toBeUndefined());
          }
        }
      }),
      runs(100),
    );
    expect(seen.size).toBeGreaterThan(20);
  });
});

const LONG = `${'a'.repeat(60)}.${'b'.repeat(60)}`;

/** A MeshEndpoints with devices that no other one has, whose lines have about 150 bytes. */
function declaring(name: string, octet: number, devices: number): object {
  const list = Array.from({ length: devices }, (_, n) =>
    endpoint({
      name: `e${n}`,
      meshIP: `100.${64 + octet}.${n >> 8}.${n & 255}`,
      meshFQDN: `d${octet}-${n}.${LONG}.example.ts.net`,
    }),
  );
  return named(meshEndpoints({ endpoints: list }), name);
}

/** How many lines have addresses of an object. */
function linesOf({ text }: TailnetDestinations, octet: number): number {
  return text.split('\n').filter(line => line.startsWith(`100.${64 + octet}.`)).length;
}

describe('the destinations of a tailnet that do not fit', () => {
  it('lack lines of the namespace that declares too much, and no others, until they fit', async () => {
    const memory = await startMemory(named(meshTailnet(), 't'));
    const destinations = destinationsIn(memory.read);
    for (const n of [1, 2, 3, 4]) await memory.author.put(declaring(`greedy/e${n}`, n, 1000));
    await memory.author.put(declaring('team-a/web', 5, 300));
    await memory.author.put(declaring('team-b/web', 6, 10));
    const found = destinations('example.ts.net');
    expect(found.cut).toEqual(['greedy']);
    expect([linesOf(found, 5), linesOf(found, 6)]).toEqual([300, 10]);
    const left = [1, 2, 3, 4].reduce((sum, n) => sum + linesOf(found, n), 0);
    expect(left).toBeLessThan(4000);
    expect(found.text.length).toBeLessThanOrEqual(MAX_LENGTH);
    expect(found.text.length).toBeGreaterThan(MAX_LENGTH - 200);
    expect(destinationsIn(memory.read)('example.ts.net')).toEqual(found);
    for (const n of [3, 4]) await memory.author.remove(refOf('MeshEndpoints', `greedy/e${n}`));
    const after = destinations('example.ts.net');
    expect(after.cut).toEqual([]);
    expect([1, 2, 3, 4, 5, 6].map(n => linesOf(after, n))).toEqual([1000, 1000, 0, 0, 300, 10]);
  });

  it('are shared equally by the namespaces that declare too much', async () => {
    const memory = await startMemory(named(meshTailnet(), 't'));
    for (const n of [1, 2, 3, 4]) await memory.author.put(declaring(`many/e${n}`, n, 1000));
    for (const n of [5, 6]) await memory.author.put(declaring(`more/e${n}`, n, 1000));
    await memory.author.put(declaring('small/web', 7, 500));
    const found = destinationsIn(memory.read)('example.ts.net');
    const linesOfAll = (...octets: readonly number[]) =>
      octets.reduce((sum, octet) => sum + linesOf(found, octet), 0);
    expect(found.cut).toEqual(['many', 'more']);
    expect(linesOf(found, 7)).toBe(500);
    expect(Math.abs(linesOfAll(1, 2, 3, 4) - linesOfAll(5, 6))).toBeLessThan(20);
  });

  it('are fewer where less is left, and are shared by the namespaces alike', async () => {
    const memory = await startMemory(named(meshTailnet(), 't'));
    for (const n of [1, 2]) await memory.author.put(declaring(`greedy/e${n}`, n, 1000));
    await memory.author.put(declaring('team-a/web', 5, 200));
    const found = destinationsIn(memory.read)('example.ts.net');
    expect(found.cut).toEqual([]);
    const less = destinationsWithin(found, 100_000);
    expect(less.cut).toEqual(['greedy']);
    expect(linesOf(less, 5)).toBe(200);
    expect(less.text.length).toBeLessThanOrEqual(100_000);
    expect(destinationsWithin(found, found.text.length)).toBe(found);
  });
});

/** The data of the ConfigMap that a new operator applies, and what the condition of the front is made from. */
function appliedFor(input: Input) {
  const { action, front } = plan(input, NO_PLAN, {
    range: { first: 20_000, last: 29_999 },
    perNamespace: undefined,
  });
  const { data = {} } = ('object' in action ? action.object : {}) as {
    data?: Readonly<Record<string, string>>;
  };
  const count = (key: string) => (data[key] ?? '').split('\n').length - 1;
  return {
    front,
    count,
    texts: data,
    length: Object.values(data).reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  };
}

describe('the ConfigMap of relays', () => {
  it('has all VIP services and UDP targets at their bounds, and of callers and destinations what fits', () => {
    const { front, count, texts, length } = appliedFor(fullInput());
    expect([count('services'), count('targets')]).toEqual([1000, 10_000]);
    expect(count('callers')).toBeGreaterThan(6000);
    expect(texts['destinations']?.length).toBeGreaterThan(90_000);
    expect(length).toBeLessThan(MAX_DATA);
    expect(length).toBeGreaterThan(MAX_DATA - 20_000);
    expect(front.omittedCallers).toBe(12_000 - count('callers'));
    expect(front.cut).toEqual(['default']);
  });

  it('has 10,000 callers of any length and the most destinations where there are no UDP targets', () => {
    const { front, count, texts, length } = appliedFor(fullInput({ wanted: [] }));
    expect([count('services'), count('targets'), count('callers')]).toEqual([1000, 0, MAX_CALLERS]);
    expect(front.omittedCallers).toBe(2000);
    expect(texts['destinations']?.length).toBeGreaterThan(MAX_LENGTH - 200);
    expect(length).toBeLessThan(MAX_DATA);
  });

  it('has 10,000 callers of usual length beside everything else', () => {
    const addresses = Array.from({ length: MAX_CALLERS }, (_, n) => `fd00:10:244:${n >> 8}::${n & 255}`);
    const callers = { addresses, nodeAddresses: [] };
    const front = frontInput({ callers, destinations: FULL_DESTINATIONS });
    const applied = appliedFor(fullInput({ front }));
    expect(applied.count('callers')).toBe(MAX_CALLERS);
    expect(applied.front.omittedCallers).toBe(0);
    expect(applied.length).toBeLessThan(MAX_DATA);
  });
});
