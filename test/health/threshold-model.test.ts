import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Verdict } from '../../src/health/health.ts';
import type { ProbeResult } from '../../src/health/check.ts';
import { applyResult, initialState } from '../../src/health/threshold.ts';

/** The same sequences in every run; SEED=2 npm test tries others. */
const seed = Number(process.env['SEED'] ?? 1);

type Thresholds = { readonly healthyThreshold: number; readonly unhealthyThreshold: number };

const arbitraryResult: fc.Arbitrary<ProbeResult> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ is: 'success' } as const) },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom('written', 'a', 'b')
      .map(error => ({ is: 'failure', error, code: error }) as const),
  },
  { weight: 1, arbitrary: fc.constant({ is: 'unknown', why: 'no mesh pod is ready' } as const) },
);

const arbitraryVerdict: fc.Arbitrary<Verdict | undefined> = fc.constantFrom(
  undefined,
  { is: 'undecided', lastChecked: undefined } as const,
  { is: 'healthy', lastChecked: new Date(-1) } as const,
  { is: 'unhealthy', error: 'written', code: 'written', lastChecked: new Date(-1) } as const,
);

const arbitraryThresholds: fc.Arbitrary<Thresholds> = fc.record({
  healthyThreshold: fc.integer({ min: 1, max: 10 }),
  unhealthyThreshold: fc.integer({ min: 1, max: 10 }),
});

/**
 * The fold counts; this model searches the history from each decision for the next one: the first run of results that
 * is long enough and differs from what is decided.
 */
function modelOf(
  written: Verdict | undefined,
  results: readonly ProbeResult[],
  { healthyThreshold, unhealthyThreshold }: Thresholds,
): Verdict {
  const known = results.map((result, at) => ({ result, at })).filter(({ result }) => result.is !== 'unknown');
  const last = known.at(-1);
  const lastChecked = last ? new Date(last.at) : written?.lastChecked;
  const runEnd = (from: number, length: number, belongs: (result: ProbeResult) => boolean) => {
    const starts = known
      .map((_, index) => index)
      .filter(index => index >= from && index + length <= known.length);
    const start = starts.find(index =>
      known.slice(index, index + length).every(({ result }) => belongs(result)),
    );
    return start === undefined ? Infinity : start + length;
  };
  let decided: Verdict = written ?? { is: 'undecided', lastChecked: undefined };
  for (let from = 0; ;) {
    const { is } = decided;
    const code = decided.is === 'unhealthy' ? decided.code : undefined;
    const up =
      is === 'healthy' ? Infinity : runEnd(from, healthyThreshold, result => result.is === 'success');
    const down = runEnd(from, unhealthyThreshold, result => result.is === 'failure' && result.code !== code);
    from = Math.min(up, down);
    const decisive = known[from - 1]?.result;
    if (!decisive) return { ...decided, lastChecked };
    decided =
      decisive.is === 'failure'
        ? { is: 'unhealthy', error: decisive.error, code: decisive.code, lastChecked: undefined }
        : { is: 'healthy', lastChecked: undefined };
  }
}

it('the verdict after any results is that of a model of the whole history', () => {
  const sequences = fc.array(arbitraryResult, { maxLength: 40 });
  const property = fc.property(
    arbitraryVerdict,
    sequences,
    arbitraryThresholds,
    (written, results, thresholds) => {
      const state = results.reduce(
        (state, result, at) => applyResult(state, result, thresholds, new Date(at)),
        initialState(written),
      );
      expect(state.verdict).toEqual(modelOf(written, results, thresholds));
    },
  );
  fc.assert(property, { seed, numRuns: 5000 });
});
