import type { networkPolicyMetrics } from '../../../telemetry/metrics.ts';
import type { GaugeReaders } from '../../../telemetry/metric-recorder.ts';
import type { PolicyEnforcement } from './enforcement.ts';
import type { Enforcement } from './verdict.ts';

/** The values of the label. */
const STATES = {
  enforced: 'enforced',
  'not-enforced': 'not_enforced',
  unknown: 'unknown',
} as const satisfies Readonly<Record<Enforcement, string>>;

/** Reads the gauge, in every replica of the operator; returns the function that ends it. */
export function readEnforcementGauge(
  replica: Pick<PolicyEnforcement, 'finding'>,
  metrics: GaugeReaders<typeof networkPolicyMetrics>,
): () => void {
  return metrics.readGauge('networkPolicies', () =>
    Object.entries(STATES).map(([enforcement, state]) => ({
      labels: { state },
      value: enforcement === replica.finding().enforcement ? 1 : 0,
    })),
  );
}
