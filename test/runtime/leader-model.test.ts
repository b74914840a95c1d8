import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LEASE_TIMING } from '../../src/runtime/leader-election/election.ts';
import { Election } from '../support/runtime/election-model.ts';
import type {
  Candidate,
  ElectionSetup,
  RequestCourse,
  ElectionEvent,
} from '../support/runtime/election-model.ts';
import { runs } from '../support/runs.ts';

/** The last event begins, the last request fails, and all their effects have ended. */
const [LAST_INCIDENT_AT, CALM_AT, STORM_ENDS_AT] = [60_000, 100_000, 120_000];

const aTime = fc.oneof(fc.nat(50), fc.nat(3000), fc.nat(20_000));
const goodCourse: fc.Arbitrary<RequestCourse> = fc.record({
  arrivesAfter: fc.nat(50),
  answer: fc.constant('answered'),
  answeredAfter: fc.nat(50),
});
const anyCourse: fc.Arbitrary<RequestCourse> = fc.record({
  arrivesAfter: fc.oneof({ weight: 5, arbitrary: aTime }, { weight: 1, arbitrary: fc.constant('never') }),
  answer: fc.constantFrom('answered', 'answered', 'answered', 'lost', 'refused'),
  answeredAfter: aTime,
});
const mixedCourse = fc.oneof({ weight: 3, arbitrary: goodCourse }, { weight: 1, arbitrary: anyCourse });

function rates(most: number): fc.Arbitrary<number> {
  const [slow, fast] = [1 - most, 1 + most];
  return fc.oneof(fc.constantFrom(slow, fast), fc.double({ min: slow, max: fast, noNaN: true }));
}

function candidates(mostDrift: number, drainMs: fc.Arbitrary<number>): fc.Arbitrary<Candidate> {
  return fc.record({
    rate: rates(mostDrift),
    offset: fc.integer({ min: -3_600_000, max: 3_600_000 }),
    drainMs,
  });
}

function event<W extends ElectionEvent['what']>(what: W) {
  return { what: fc.constant(what), at: fc.nat(LAST_INCIDENT_AT), to: fc.nat(3) };
}
const aSpan = fc.oneof(fc.nat(3000), fc.nat(30_000));
const freeze: fc.Arbitrary<ElectionEvent> = fc.record({ ...event('freeze'), ms: aSpan });
const cutOff: fc.Arbitrary<ElectionEvent> = fc.record({ ...event('cut off'), ms: aSpan });
const kill: fc.Arbitrary<ElectionEvent> = fc.record({ ...event('kill'), ms: aSpan });
const stop: fc.Arbitrary<ElectionEvent> = fc.record({ ...event('stop'), ms: aSpan });
const edit: fc.Arbitrary<ElectionEvent> = fc.record({
  ...event('edit'),
  holder: fc.constantFrom('none', 'another'),
});
const deletion: fc.Arbitrary<ElectionEvent> = fc.record(event('delete'));
const exchange: fc.Arbitrary<ElectionEvent> = fc.record({
  ...event('edit'),
  holder: fc.constantFrom('none', 'another', 'one of them'),
});

const anyDrain = fc.oneof(
  { weight: 3, arbitrary: fc.nat(900) },
  { weight: 1, arbitrary: fc.constant(20_000) },
);

type Storm = {
  readonly course: fc.Arbitrary<RequestCourse>;
  readonly event: fc.Arbitrary<ElectionEvent>;
  /** How long the work of a leader takes to end; if that is too long, the process ends and another begins. */
  readonly drainMs?: fc.Arbitrary<number>;
  readonly mostDrift?: number;
  readonly timing?: typeof LEASE_TIMING;
};

function elections(storm: Storm): fc.Arbitrary<ElectionSetup> {
  const { course, drainMs = anyDrain, mostDrift = 0.1, timing = LEASE_TIMING } = storm;
  const jitter = fc.double({ min: 0, max: 1, noNaN: true });
  return fc.record({
    candidates: fc.array(candidates(mostDrift, drainMs), { minLength: 2, maxLength: 4 }),
    courses: fc.array(course, { minLength: 1, maxLength: 60, size: 'max' }),
    events: fc.array(storm.event, { maxLength: 12, size: 'max' }),
    jitters: fc.array(jitter, { minLength: 1, maxLength: 20 }),
    calmAt: fc.constant(CALM_AT),
    timing: fc.constant(timing),
  });
}

const anything = { course: fc.oneof(anyCourse, mixedCourse), event: fc.oneof(freeze, cutOff, kill, stop) };

/**
 * Events under which two never lead at the same time, with clocks of any offset and rates that differ by 10 percent.
 */
const storms: Readonly<Record<string, Storm>> = {
  'while requests and processes fail': anything,
  'when most requests succeed': { ...anything, course: mixedCourse },
  'while another writer edits the lease': { course: mixedCourse, event: fc.oneof(edit, freeze, kill, stop) },
  'while another writer writes other names into the lease': {
    course: goodCourse,
    event: fc.oneof(exchange, freeze, kill, stop),
  },
  'while another writer deletes the lease, and requests and processes fail': {
    course: fc.oneof(anyCourse, mixedCourse),
    event: fc.oneof(deletion, freeze, cutOff, kill, stop),
  },
  'while another writer deletes the lease and most requests succeed': {
    course: mixedCourse,
    event: fc.oneof(deletion, freeze, cutOff, kill, stop),
  },
  'while another writer edits and deletes the lease': {
    course: mixedCourse,
    event: fc.oneof(deletion, edit, cutOff, kill),
  },
};

/** The maximum time until one leads after the faults end, with clocks that are 10 percent slow. */
const LEADS_WITHIN_MS = 16_000;

/** How soon another leads, and for how long none acts before: the table of election.ts. */
const ends = [
  { what: 'kill', drift: 0, within: 12_400, rest: 7000 },
  { what: 'freeze', drift: 0, within: 12_400, rest: 3000 },
  { what: 'cut off', drift: 0, within: 12_400, rest: 3000 },
  { what: 'stop', drift: 0, within: 2400, rest: 0 },
  { what: 'kill', drift: 0.1, within: 13_700, rest: 6000 },
  { what: 'freeze', drift: 0.1, within: 13_700, rest: 1300 },
  { what: 'cut off', drift: 0.1, within: 13_700, rest: 1300 },
  { what: 'stop', drift: 0.1, within: 2700, rest: 0 },
] as const;

describe('an election', () => {
  describe.each(Object.entries(storms))('%s', (_what, storm) => {
    it('never has two who lead at once', () => {
      const property = fc.property(elections(storm), setup => {
        const election = new Election(setup);
        election.runUntil(STORM_ENDS_AT);
        expect(election.clashes).toEqual([]);
      });
      fc.assert(property, runs(1000));
    });

    it('has a stable leader soon after the faults end', () => {
      const property = fc.property(elections(storm), setup => {
        const election = new Election(setup);
        election.runUntil(STORM_ENDS_AT + LEADS_WITHIN_MS);
        const [leader, ...others] = election.leaders();
        expect([leader, others]).toEqual([expect.any(Number), []]);
        const count = election.holds.length;
        election.runUntil(STORM_ENDS_AT + LEADS_WITHIN_MS + 60_000);
        expect([election.leaders(), election.holds.length, election.clashes]).toEqual([[leader], count, []]);
      });
      fc.assert(property, runs(1000));
    });
  });

  it.each<readonly [string, Partial<Storm>]>([
    ['clocks go wrong by 30 percent', { mostDrift: 0.3 }],
    ['leaders lead for nearly as long as others wait', { timing: { ...LEASE_TIMING, holdMs: 9500 } }],
  ])('can have two who lead at once if %s', (_what, change) => {
    const property = fc.property(elections({ ...anything, ...change }), setup => {
      const election = new Election(setup);
      election.runUntil(STORM_ENDS_AT);
      return election.clashes.length === 0;
    });
    expect(fc.check(property, { ...runs(6000), endOnFailure: true }).failed).toBe(true);
  });

  it.each(ends)(
    'has another who leads $within ms after the leader was $what, and rests for $rest ms, at a drift of $drift',
    ({ what, drift, within, rest }) => {
      const rates = [
        [1, 1],
        [1 - drift, 1 + drift],
        [1 + drift, 1 - drift],
      ] as const;
      const property = fc.property(endings(what, fc.constantFrom(...rates)), setup => {
        const election = new Election(setup);
        election.runUntil(60_000);
        const [first, second] = election.holds;
        const endedAt = setup.events.at(-1)?.at ?? 0;
        expect(election.clashes).toEqual([]);
        expect(first?.who).toBe(0);
        expect((second?.from ?? Infinity) - endedAt).toBeLessThan(within);
        expect((second?.from ?? 0) - (first?.until ?? 0)).toBeGreaterThan(rest);
      });
      fc.assert(property, runs(1000));
    },
  );
});

/** A leader that exists when the others start, and then stops leading; its clock has another rate than theirs. */
function endings(
  what: 'kill' | 'freeze' | 'cut off' | 'stop',
  both: fc.Arbitrary<readonly [number, number]>,
): fc.Arbitrary<ElectionSetup> {
  const jitter = fc.double({ min: 0, max: 1, noNaN: true });
  const late = [1, 2].map(to => ({ what: 'kill', at: 0, to, ms: 8000 }) as const);
  return fc.record({
    candidates: both.map(([own, theirs]) =>
      [own, theirs, theirs].map(rate => ({ rate, offset: 0, drainMs: 0 })),
    ),
    courses: fc.array(goodCourse, { minLength: 1, maxLength: 60, size: 'max' }),
    events: fc.integer({ min: 20_000, max: 24_000 }).map(at => [...late, { what, at, to: 0, ms: 100_000 }]),
    jitters: fc.array(jitter, { minLength: 1, maxLength: 20 }),
    calmAt: fc.constant(Infinity),
  });
}
