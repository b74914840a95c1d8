import type { CheckedEndpoint, Verdict } from '../../../src/health/health.ts';
import type { Check } from '../../../src/health/check.ts';

/** A TCP check, with some of its fields replaced. */
export function tcpCheck(address: string, fields: Partial<Check> = {}): Check {
  return {
    tailnet: 'example',
    namespace: 'team',
    target: { addresses: [address], port: 8080 },
    via: { is: 'pool' },
    intervalMs: 10_000,
    timeoutMs: 5000,
    healthyThreshold: 2,
    unhealthyThreshold: 3,
    settings: { type: 'TCP' },
    ...fields,
  };
}

export const healthy: Verdict = { is: 'healthy', lastChecked: new Date('2026-01-01T00:00:00Z') };

/** An endpoint for the monitor, without a written verdict if none is given. */
export function checked(check: Check, written?: Verdict): CheckedEndpoint {
  return { check, written };
}
