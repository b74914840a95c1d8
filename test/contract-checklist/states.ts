import { row } from './row.ts';
import type { NamedTest, Table } from './row.ts';
import { STATUS, VIP_SERVICES, WRITTEN } from './service.ts';

/** The limits of fields, each by a file of the corpus. */
export const REFUSED: NamedTest = ['test/corpus.test.ts', 'refuses $file at one path'];
/** What checks decide, after which results. */
export const DECIDED: NamedTest = ['test/health/threshold.test.ts', '%s is after %j %s with the error %j'];
const CHECKED_AT: NamedTest = ['test/health/threshold.test.ts', 'is that of %s'];

/** The tables of states, and of what changes them. */
export const STATE_TABLES: readonly Table[] = [
  {
    name: 'States',
    columns: ['Object', 'State values'],
    rows: [
      row(
        ['Endpoint status', '`Healthy`, `Unhealthy`'],
        REFUSED,
        ['test/corpus.test.ts', 'have every field and enum value, and reach every limit'],
        WRITTEN,
      ),
      row(['VIP service status', '`Registered`'], VIP_SERVICES),
      row(
        ['Condition `Ready`', 'status `True` with reason `EndpointsConfigured`'],
        [STATUS, 'is True while an endpoint is healthy'],
      ),
    ],
  },
  {
    name: 'Transitions',
    columns: ['State', 'Trigger', 'Condition', 'Next state', 'Other effects'],
    rows: [
      row(
        [
          'Unhealthy',
          'health check result',
          '`healthyThreshold` consecutive successes',
          'Healthy',
          '`lastChecked` updated',
        ],
        DECIDED,
        CHECKED_AT,
        WRITTEN,
      ),
      row(
        [
          'Healthy',
          'health check result',
          '`unhealthyThreshold` consecutive failures',
          'Unhealthy',
          '`error` set, `lastChecked` updated',
        ],
        DECIDED,
        CHECKED_AT,
        WRITTEN,
      ),
    ],
  },
];
