import type { Verdict } from './health.ts';
import type { Check, ProbeResult } from './check.ts';

/** The verdict about an endpoint, and how many of its latest results in a row were the same. */
export type HealthState = {
  readonly verdict: Verdict;
  readonly successes: number;
  readonly failures: number;
};

/** How many results in a row change a verdict. */
export type Thresholds = Pick<Check, 'healthyThreshold' | 'unhealthyThreshold'>;

/** A written verdict holds until new results decide. */
export function initialState(written: Verdict | undefined): HealthState {
  return { verdict: written ?? { is: 'undecided', lastChecked: undefined }, successes: 0, failures: 0 };
}

/*
 * The state after a result that came at a time:
 *
 *   verdict                  result    in a row             next verdict
 *   undecided or unhealthy   success   healthyThreshold     healthy
 *   undecided or healthy     failure   unhealthyThreshold   unhealthy, with the error
 *   unhealthy                failure   any                  unhealthy, with the new error
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
      const failures = state.failures + 1;
      const isUnhealthy = verdict.is === 'unhealthy' || failures >= thresholds.unhealthyThreshold;
      const { error } = result;
      return {
        verdict: isUnhealthy ? { is: 'unhealthy', error, lastChecked: at } : checked,
        successes: 0,
        failures,
      };
    }
  }
}
