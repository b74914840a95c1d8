import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  enforcementOf,
  findingOf,
  formatReport,
  parseReport,
  UNTRIED,
  verdictAfter,
  worstOf,
} from '../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';
import type {
  Attempts,
  EnforcementReason,
  Outcome,
  Verdict,
} from '../../../../src/controllers/mesh-tailnet/enforcement/verdict.ts';

const OUTCOMES: readonly Outcome[] = ['accepted', 'refused', 'timed-out', 'failed'];
const FOUND: readonly EnforcementReason[] = [
  ...(['NetworkPoliciesEnforced', 'NotEnforced', 'NoMeshPod'] as const),
  ...(['NoExtensionServer', 'Unreachable', 'NotTried'] as const),
];

const outcomes = fc.array(fc.constantFrom(...OUTCOMES), { maxLength: 4 });
const attempts: fc.Arbitrary<Attempts> = fc.record({ forbidden: outcomes, permitted: outcomes });

describe('attempts to connect', () => {
  it.each<readonly [string, readonly Outcome[], readonly Outcome[], EnforcementReason]>([
    ['a forbidden one succeeds', ['accepted'], ['accepted'], 'NotEnforced'],
    ['one of the forbidden ones succeeds', ['timed-out', 'accepted'], ['accepted'], 'NotEnforced'],
    ['only a forbidden one succeeds', ['accepted'], ['timed-out'], 'NotEnforced'],
    ['a forbidden one succeeds, and no mesh pod is ready', ['accepted'], [], 'NotEnforced'],
    ['only the permitted one succeeds', ['timed-out'], ['accepted'], 'NetworkPoliciesEnforced'],
    ['a plugin rejects the forbidden one', ['refused'], ['accepted'], 'NetworkPoliciesEnforced'],
    [
      'one of the permitted ones succeeds',
      ['timed-out'],
      ['timed-out', 'accepted'],
      'NetworkPoliciesEnforced',
    ],
    ['none succeeds', ['timed-out'], ['timed-out'], 'Unreachable'],
    ['the permitted one is refused', ['refused'], ['refused'], 'Unreachable'],
    ['no extension server is ready', [], ['accepted'], 'NoExtensionServer'],
    ['no mesh pod is ready', ['timed-out'], [], 'NoMeshPod'],
    ['this machine has no socket left', ['failed'], ['accepted'], 'NotTried'],
  ])('of which %s', (_what, forbidden, permitted, reason) => {
    expect(findingOf({ forbidden, permitted })).toBe(reason);
  });

  it('show that policies are not enforced only by a forbidden one that succeeds', () => {
    fc.assert(
      fc.property(attempts, each => {
        const isAccepted = each.forbidden.includes('accepted');
        expect(enforcementOf(findingOf(each)) === 'not-enforced').toBe(isAccepted);
      }),
    );
  });

  it('show that policies are enforced only beside a permitted one that succeeds', () => {
    fc.assert(
      fc.property(attempts, each => {
        if (enforcementOf(findingOf(each)) !== 'enforced') return;
        expect(each.permitted).toContain('accepted');
        expect(
          each.forbidden.filter(outcome => outcome === 'refused' || outcome === 'timed-out'),
        ).not.toEqual([]);
      }),
    );
  });
});

/** The verdict after attempts at these seconds. */
function after(
  steps: readonly (readonly [seconds: number, found: EnforcementReason])[],
  before = UNTRIED,
): Verdict {
  return steps.reduce((verdict, [seconds, found]) => verdictAfter(verdict, found, seconds * 1000), before);
}

describe('the verdict of a replica', () => {
  it.each<readonly [string, readonly (readonly [number, EnforcementReason])[], EnforcementReason]>([
    ['has not tried it at first', [], 'NotTried'],
    ['counts a forbidden connection at once', [[0, 'NotEnforced']], 'NotEnforced'],
    ['does not trust the first attempts that show enforcement', [[0, 'NetworkPoliciesEnforced']], 'NotTried'],
    [
      'trusts those that agree for 10 s',
      [
        [0, 'NetworkPoliciesEnforced'],
        [10, 'NetworkPoliciesEnforced'],
      ],
      'NetworkPoliciesEnforced',
    ],
    [
      'counts from the last that show nothing',
      [
        [0, 'NetworkPoliciesEnforced'],
        [5, 'Unreachable'],
        [10, 'NetworkPoliciesEnforced'],
      ],
      'Unreachable',
    ],
    [
      'waits for a minute where policies were not enforced before, since a dead node drops packets too',
      [
        [0, 'NotEnforced'],
        [10, 'NetworkPoliciesEnforced'],
        [60, 'NetworkPoliciesEnforced'],
      ],
      'NotEnforced',
    ],
    [
      'changes after that minute',
      [
        [0, 'NotEnforced'],
        [10, 'NetworkPoliciesEnforced'],
        [70, 'NetworkPoliciesEnforced'],
      ],
      'NetworkPoliciesEnforced',
    ],
    [
      'stays while the extension server is down',
      [
        [0, 'NetworkPoliciesEnforced'],
        [10, 'NetworkPoliciesEnforced'],
        [70, 'NoExtensionServer'],
        [130, 'NoExtensionServer'],
      ],
      'NetworkPoliciesEnforced',
    ],
    [
      'is not known after five minutes in which attempts show nothing',
      [
        [0, 'NotEnforced'],
        [60, 'Unreachable'],
        [300, 'Unreachable'],
      ],
      'Unreachable',
    ],
  ])('%s', (_what, steps, reason) => {
    expect(after(steps).reason).toBe(reason);
  });

  const steps = fc.array(fc.tuple(fc.integer({ min: 1, max: 120 }), fc.constantFrom(...FOUND)), {
    maxLength: 30,
  });

  it('is that policies are enforced only where attempts have shown it twice since a forbidden connection', () => {
    fc.assert(
      fc.property(steps, gaps => {
        let [seconds, shown, verdict] = [0, 0, UNTRIED];
        for (const [gap, found] of gaps) {
          seconds += gap;
          verdict = verdictAfter(verdict, found, seconds * 1000);
          if (found === 'NotEnforced') shown = 0;
          if (found === 'NetworkPoliciesEnforced') shown++;
          if (verdict.reason === 'NetworkPoliciesEnforced') expect(shown).toBeGreaterThanOrEqual(2);
          if (found === 'NotEnforced') expect(verdict.reason).toBe('NotEnforced');
        }
      }),
    );
  });

  it('is no older than five minutes', () => {
    fc.assert(
      fc.property(steps, gaps => {
        let [seconds, shownAt, verdict] = [0, -Infinity, UNTRIED];
        for (const [gap, found] of gaps) {
          seconds += gap;
          verdict = verdictAfter(verdict, found, seconds * 1000);
          if (enforcementOf(found) !== 'unknown') shownAt = seconds;
          if (seconds - shownAt >= 300) expect(enforcementOf(verdict.reason)).toBe('unknown');
        }
      }),
    );
  });
});

describe('the finding of all replicas', () => {
  const found = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(...FOUND));

  it('is the worst of theirs, with the pods that have found it', () => {
    fc.assert(
      fc.property(found, reasons => {
        const { enforcement, reason, pods } = worstOf(new Map(Object.entries(reasons)));
        const states = Object.values(reasons).map(enforcementOf);
        const worst = states.includes('not-enforced')
          ? 'not-enforced'
          : states.includes('unknown') || states.length === 0
            ? 'unknown'
            : 'enforced';
        expect(enforcement).toBe(worst);
        expect(enforcementOf(reason)).toBe(worst);
        const names = Object.keys(reasons).filter(
          name => enforcementOf(reasons[name] ?? 'NotTried') === worst,
        );
        expect(pods).toEqual(names.sort());
      }),
    );
  });
});

describe('the report of a replica', () => {
  it('is read as it was written', () => {
    const report = { reason: 'NotEnforced', at: new Date('2026-01-15T12:00:00Z') } as const;
    expect(parseReport(formatReport(report))).toEqual(report);
  });

  it.each([
    '',
    'enforced',
    '{}',
    '{"reason":"NotEnforced"}',
    '{"reason":"toString","at":"2026-01-15T12:00:00Z"}',
  ])('is none where it is %j', text => {
    expect(parseReport(text)).toBeUndefined();
  });
});
