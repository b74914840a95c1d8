import type { Clock } from '../api/clock.ts';
import type { Log } from '../telemetry/log.ts';
import type { healthMetrics } from '../telemetry/metrics.ts';
import type { Recorder } from '../telemetry/metric-recorder.ts';
import type { Check, ProbeResult } from './check.ts';

export type ResultsDeps = {
  readonly clock: Clock;
  readonly record: Recorder<typeof healthMetrics>;
  readonly log: Log;
};

/** Whether checks of a tailnet reach its endpoints, as it was logged last. */
type Logged = { readonly isUnknown: boolean; readonly at: number };

const LOG_INTERVAL_MS = 60_000;

/** Returns the function that records and logs the results of probes. */
export function reportResults(
  deps: ResultsDeps,
): (check: Check, result: ProbeResult, tookMs: number) => void {
  const { record } = deps;
  const logUnknown = unknownLog(deps);
  return (check, result, tookMs) => {
    const { tailnet } = check;
    const { type } = check.settings;
    if (result.is === 'unknown') record.healthUnknown({ tailnet, type });
    else record.healthSeconds({ type }, tookMs / 1000);
    if (result.is === 'success') record.healthSuccess({ tailnet, type });
    if (result.is === 'failure') record.healthFailure({ tailnet, type });
    logUnknown(check, result);
  };
}

/** Logs changes of a tailnet between unknown and known results, at most once a minute. */
function unknownLog({ clock, log }: ResultsDeps): (check: Check, result: ProbeResult) => void {
  const logged = new Map<string, Logged>();
  return ({ tailnet, target }, result) => {
    const isUnknown = result.is === 'unknown';
    if (isUnknown) log.debug('health check has no result', { tailnet, target, reason: result.why });
    const last = logged.get(tailnet) ?? { isUnknown: false, at: -Infinity };
    if (last.isUnknown === isUnknown || clock.now() - last.at < LOG_INTERVAL_MS) return;
    logged.set(tailnet, { isUnknown, at: clock.now() });
    if (isUnknown) log.info('health checks of a tailnet have no results', { tailnet, reason: result.why });
    else log.info('health checks of a tailnet have results again', { tailnet });
  };
}
