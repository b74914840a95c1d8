import { isSameFailure } from './health.ts';
import type { Verdict } from './health.ts';
import type { Check, ProbeResult } from './check.ts';

/** The verdict about an endpoint, and how many of the latest results in a row differ from it. */
export type HealthState = {
  readonly verdict: Verdict;
  readonly successes: number;
  /** Failures with another cause than that of the verdict. */
  readonly failures: number;
};

/** How many results in a row change a verdict. */
export type Thresholds = Pick<Check, 'healthyThreshold' | 'unhealthyThreshold'>;

/** A written verdict holds until new results decide. */
export function initialState(written: Verdict | undefined): HealthState {
  const verdict = written ?? { is: 'undecided', lastChecked: undefined };
  return { verdict, successes: 0, failures: 0 };
}

/*
 * The state after a result that came at a time:
 *
 *   verdict                  result    in a row             next verdict
 *   undecided or unhealthy   success   healthyThreshold     healthy
 *   undecided or healthy     failure   unhealthyThreshold   unhealthy, with the latest error
 *   unhealthy                failure   unhealthyThreshold   unhealthy, with the latest error, if all of them
 *                                                           have other causes than the verdict
 *   unhealthy, as written    failure   1                    unhealthy, with its error and cause
 *   any                      unknown   any                  the same, and nothing is counted
 */
export function applyResult(
  state: HealthState,
  result: ProbeResult,
  thresholds: Thresholds,
  at: Date,
): HealthState {
  const { verdict } = state;
  const checked = { ...verdict, lastChecked: at };
  switch (result.is) {
    case 'unknown':
      return state;
    case 'success': {
      const successes = state.successes + 1;
      const isHealthy = successes >= thresholds.healthyThreshold;
      return { verdict: isHealthy ? { is: 'healthy', lastChecked: at } : checked, successes, failures: 0 };
    }
    case 'failure': {
      const { error, code } = result;
      const failures = isSameFailure(verdict, code) ? 0 : state.failures + 1;
      const isAdopted = verdict.is === 'unhealthy' && verdict.code === undefined;
      if (failures < thresholds.unhealthyThreshold && !isAdopted)
        return { verdict: checked, successes: 0, failures };
      const next: Verdict = { is: 'unhealthy', error, code, lastChecked: at };
      return { verdict: next, successes: 0, failures: 0 };
    }
  }
}
