import fc from 'fast-check';
import { isDeepStrictEqual as isEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  departureOf,
  formatLedger,
  HELD_MS,
  nextLedger,
  parseLedger,
} from '../../../src/controllers/vip-services/ledger.ts';
import { MAX_SERVED } from '../../../src/api/served-services.ts';
import { shareOfNames } from '../../../src/api/shares.ts';
import type { Holder, Ledger, LedgerInput, Lister } from '../../../src/controllers/vip-services/ledger.ts';
import { runs } from '../../support/runs.ts';

const NOW = new Date('2026-01-15T12:00:00Z');
const before = (ms: number) => new Date(NOW.getTime() - ms);
const HOLDER: Holder = { object: 'a/web', uid: 'uid-a', since: before(3_600_000) };

const lister = (place: string, createdMs = 0): Lister => {
  const [namespace = ''] = place.split('/');
  return { place, namespace, uid: 'uid-new', createdMs };
};

function ledgerAfter(input: LedgerInput): Ledger {
  const work = nextLedger(input);
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Who has svc:web next. */
function holderAfter(
  holder: Holder | undefined,
  listers: readonly string[],
  more: Partial<LedgerInput> = {},
) {
  const objects = listers.map((place, index) => lister(place, index));
  return ledgerAfter({
    before: new Map(holder ? [['svc:web', holder]] : []),
    listers: new Map(objects.length > 0 ? [['svc:web', objects]] : []),
    hasDropped: () => false,
    isUnserved: () => true,
    registrants: new Map(),
    maxNames: 1000,
    now: NOW,
    ...more,
  }).get('svc:web');
}

const LEFT: Holder = { ...HOLDER, leftAt: before(HELD_MS - 1000) };
const LONG_LEFT: Holder = { ...HOLDER, leftAt: before(HELD_MS) };
const DROPPED = { hasDropped: () => true };
const SERVED = { isUnserved: () => false };

describe('the holder of a name', () => {
  it.each<[string, Holder | undefined, readonly string[], Partial<LedgerInput>, string | undefined]>([
    ['is the oldest that lists it, at first', undefined, ['b/web', 'a/web'], {}, 'b/web'],
    [
      'is the one that registered it, before there was a ledger',
      undefined,
      ['b/web', 'a/web'],
      { registrants: new Map([['svc:web', 'a/web']]) },
      'a/web',
    ],
    ['stays, however old another is', HOLDER, ['b/web', 'a/web'], {}, 'a/web'],
    [
      'stays, whoever has registered it',
      HOLDER,
      ['b/web', 'a/web'],
      { registrants: new Map([['svc:web', 'b/web']]) },
      'a/web',
    ],
    ['stays for ten minutes after it was deleted', LEFT, ['b/web'], {}, 'a/web'],
    ['stays for as long while another object of its namespace lists it', LEFT, ['a/other'], {}, 'a/web'],
    ['is another after ten minutes', LONG_LEFT, ['b/web'], {}, 'b/web'],
    ['is another at once where it lists the name no more', HOLDER, ['b/web'], DROPPED, 'b/web'],
    ['stays while a mesh pod serves it', HOLDER, ['b/web'], { ...DROPPED, ...SERVED }, 'a/web'],
    ['stays while a mesh pod serves it, however long', LONG_LEFT, ['b/web'], SERVED, 'a/web'],
    ['is none where no object lists it', LONG_LEFT, [], {}, undefined],
  ])('%s', (_, holder, listers, more, expected) => {
    expect(holderAfter(holder, listers, more)?.object).toBe(expected);
  });

  it('has left since it was missed first, and has not once it is back, with another uid', () => {
    const missed = holderAfter(HOLDER, ['b/web']);
    expect(missed).toEqual({ ...HOLDER, leftAt: NOW });
    expect(holderAfter(LEFT, ['b/web'])).toEqual(LEFT);
    expect(holderAfter(LEFT, ['a/web'])).toEqual({ ...HOLDER, uid: 'uid-new' });
    expect(holderAfter({ ...LEFT, uid: 'uid-new' }, ['a/web'])).toEqual({ ...HOLDER, uid: 'uid-new' });
  });

  it('that left in the future, by a clock that was set back, leaves now', () => {
    const future = { ...HOLDER, leftAt: new Date(NOW.getTime() + 3_600_000) };
    expect(holderAfter(future, ['b/web'])).toEqual({ ...HOLDER, leftAt: NOW });
  });

  it('is in the same ledger while nothing changes, so that what follows from it can be kept', () => {
    const known = new Map([['svc:web', { ...HOLDER, uid: 'uid-new' }]]);
    const input = {
      ...{ before: known, listers: new Map([['svc:web', [lister('a/web')]]]), hasDropped: () => true },
      ...{ isUnserved: () => true, registrants: new Map<string, string>(), maxNames: 1000, now: NOW },
    };
    expect(ledgerAfter(input)).toBe(known);
    const left = new Map([['svc:web', LEFT]]);
    expect(ledgerAfter({ ...input, before: left, listers: new Map(), hasDropped: () => false })).toBe(left);
    expect(ledgerAfter({ ...input, before: new Map([['svc:web', HOLDER]]) }).get('svc:web')).toEqual({
      ...HOLDER,
      uid: 'uid-new',
    });
  });

  it('differs for each departure', () => {
    expect(departureOf(HOLDER)).toBeUndefined();
    expect(departureOf(LEFT)).not.toBe(departureOf(LONG_LEFT));
  });
});

describe('a namespace', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `svc:s-${index}`);
  const listed = (count: number, place: string) =>
    new Map(names(count).map(name => [name, [lister(place)]] as const));
  const next = (more: Partial<LedgerInput>) =>
    ledgerAfter({
      ...{ before: new Map(), listers: new Map(), hasDropped: () => true, isUnserved: () => true },
      ...{ registrants: new Map(), maxNames: 24, now: NOW, ...more },
    });

  it('has no more names than its share, and the next goes to another namespace', () => {
    const listers = listed(4, 'greedy/web');
    const other = lister('other/web');
    const held = next({ listers: new Map([...listers].map(([name, all]) => [name, [...all, other]])) });
    const counts = [...held.values()].filter(holder => holder.object === 'greedy/web').length;
    expect([counts, held.size]).toEqual([3, 4]);
  });

  it('keeps what it had registered before there was a ledger, beyond its share', () => {
    const listers = listed(30, 'old/web');
    const registrants = new Map([...listers.keys()].map(name => [name, 'old/web']));
    expect(next({ listers, registrants }).size).toBe(30);
  });

  it.each([
    [1000, 125],
    [23, 2],
    [7, 1],
    [1, 1],
  ])('has an eighth of the %i names of a tailnet, rounded down, and one at least: %i', (max, share) => {
    expect(shareOfNames(max)).toBe(share);
    expect(next({ maxNames: max, listers: listed(share + 1, 'greedy/web') }).size).toBe(share);
  });

  it('gets no name that the tailnet has no more room for, and keeps those that it has where there is less', () => {
    const listers = new Map(names(10).map((name, index) => [name, [lister(`n-${index}/web`)]] as const));
    const held = next({ maxNames: 7, listers });
    expect(held.size).toBe(7);
    expect(next({ maxNames: 1, listers, before: held })).toEqual(held);
  });

  it('gets the room of a name that is let go at once, also where nothing else has changed', () => {
    const before = new Map([['svc:old', LONG_LEFT]]);
    const listers = new Map([['svc:new', [lister('b/web')]]]);
    const waiting = { before, listers, maxNames: 1 };
    for (const changed of [undefined, new Set<string>()])
      expect([...next({ ...waiting, changed }).keys()]).toEqual(['svc:new']);
    expect([...next({ ...waiting, ...SERVED, changed: new Set() }).keys()]).toEqual(['svc:old']);
  });

  it('gets no name without room that another had registered, which is deleted', () => {
    const listers = new Map([['svc:web', [lister('b/web')]]]);
    const registrants = new Map([['svc:web', 'a/web']]);
    const full = new Map([['svc:old', HOLDER]]);
    const listed = new Map([...listers, ['svc:old', [lister('a/web')]]] as const);
    expect([...next({ before: full, listers: listed, registrants, maxNames: 1 }).keys()]).toEqual([
      'svc:old',
    ]);
    expect(next({ listers, registrants, maxNames: 1 }).get('svc:web')?.object).toBe('b/web');
  });

  it('keeps no more names that it had registered than mesh pods can serve', () => {
    const listers = listed(MAX_SERVED + 1, 'old/web');
    const registrants = new Map([...listers.keys()].map(name => [name, 'old/web']));
    expect(next({ listers, registrants }).size).toBe(MAX_SERVED);
  });
});

describe('a ledger', () => {
  const NAMES = ['svc:a', 'svc:b', 'svc:c', 'svc:d'];
  const PLACES = ['a/web', 'a/api', 'b/web', 'c/web'];
  const someListers = fc.array(fc.subarray(PLACES), { minLength: NAMES.length, maxLength: NAMES.length });
  const step = fc.record({
    listed: someListers,
    existing: fc.subarray(PLACES),
    served: fc.subarray(NAMES),
    passedMs: fc.constantFrom(0, 1000, HELD_MS / 2, HELD_MS),
  });
  const maxNames = fc.constantFrom(1, 2, 24);

  it('is what it would be if all names were reviewed, where only those that have changed are', () => {
    const property = fc.property(fc.array(step, { maxLength: 12 }), maxNames, (steps, most) => {
      let [ledger, listers, ms] = [new Map() as Ledger, new Map<string, Lister[]>(), 0];
      for (const { listed, existing, served, passedMs } of steps) {
        const found = NAMES.map(
          (name, at) => [name, (listed[at] ?? []).map(place => lister(place))] as const,
        );
        const next = new Map(found.filter(([, all]) => all.length > 0));
        const changed = new Set(NAMES.filter(name => !isEqual(next.get(name), listers.get(name))));
        ms += passedMs;
        const input = {
          ...{ before: ledger, listers: next, registrants: new Map<string, string>(), maxNames: most },
          hasDropped: (object: string) => existing.includes(object),
          isUnserved: (name: string) => !served.includes(name),
          now: new Date(NOW.getTime() + ms),
        };
        const whole = ledgerAfter(input);
        expect(ledgerAfter({ ...input, changed })).toEqual(whole);
        [ledger, listers] = [whole, next];
      }
    });
    fc.assert(property, runs(300));
  });
});

describe('the text of a ledger', () => {
  const ledger = new Map([
    ['svc:web', LEFT],
    ['svc:api', { ...HOLDER, uid: '' }],
  ]);

  it('is read as it was written', () => {
    const ignored: number[] = [];
    const text = formatLedger(ledger);
    expect(new Map(parseLedger(text, line => void ignored.push(line)))).toEqual(ledger);
    expect([text.split('\n').length, ignored]).toEqual([3, []]);
  });

  it.each([
    'svc:web a/web uid-a yesterday-at-noon-00',
    'svc:web a uid-a 2026-01-15T11:00:00Z',
    'web a/web uid-a 2026-01-15T11:00:00Z',
    'svc:web a/web uid-a 2026-01-15T11:00:00Z 2026-01-15T11:00:00Z more',
    'svc:api b/web uid-b 2026-01-15T11:00:00Z',
  ])('without a valid line lacks that alone: %s', line => {
    const ignored: number[] = [];
    const valid = 'svc:api a/web uid-a 2026-01-15T11:00:00Z';
    const parsed = parseLedger(`${valid}\n${line}\n`, at => void ignored.push(at));
    expect([[...parsed.values()].map(holder => holder.object), ignored]).toEqual([['a/web'], [2]]);
  });
});
