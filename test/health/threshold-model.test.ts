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
  { weight: 4, arbitrary: fc.string().map(error => ({ is: 'failure', error }) as const) },
  { weight: 1, arbitrary: fc.constant({ is: 'unknown', why: 'no mesh pod is ready' } as const) },
);

const arbitraryVerdict: fc.Arbitrary<Verdict | undefined> = fc.constantFrom(
  undefined,
  { is: 'undecided', lastChecked: undefined } as const,
  { is: 'healthy', lastChecked: new Date(-1) } as const,
  { is: 'unhealthy', error: 'written', lastChecked: new Date(-1) } as const,
);

const arbitraryThresholds: fc.Arbitrary<Thresholds> = fc.record({
  healthyThreshold: fc.integer({ min: 1, max: 10 }),
  unhealthyThreshold: fc.integer({ min: 1, max: 10 }),
});

/** The fold counts; this model searches the whole history, result by result, for the last run that decided. */
function modelOf(
  written: Verdict | undefined,
  results: readonly ProbeResult[],
  thresholds: Thresholds,
): Verdict {
  const known = results.map((result, at) => ({ result, at })).filter(({ result }) => result.is !== 'unknown');
  const endsRun = (index: number, is: ProbeResult['is'], length: number) =>
    index + 1 >= length && known.slice(index + 1 - length, index + 1).every(({ result }) => result.is === is);
  const indexes = known.map((_, index) => index);
  const lastUp = indexes.findLast(index => endsRun(index, 'success', thresholds.healthyThreshold)) ?? -1;
  const lastDown = indexes.findLast(index => endsRun(index, 'failure', thresholds.unhealthyThreshold)) ?? -1;
  const last = known.at(-1);
  const lastChecked = last ? new Date(last.at) : written?.lastChecked;
  const decided =
    lastUp === lastDown ? (written?.is ?? 'undecided') : lastUp > lastDown ? 'healthy' : 'unhealthy';
  if (decided !== 'unhealthy') return { is: decided, lastChecked };
  const errors = known.flatMap(({ result }) => (result.is === 'failure' ? [result.error] : []));
  return { is: 'unhealthy', error: errors.at(-1) ?? written?.error ?? '', lastChecked };
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
