import { COMPONENTS } from '../../src/api/names.ts';
import {
  foreignMetrics,
  controllerMetrics,
  extensionMetrics,
  leaderMetrics,
} from '../../src/telemetry/metrics.ts';
import { maxOf, rateOf, seriesOf, sumOf } from '../expression.ts';

/** What somebody should look at, and how to begin. */
export type Alert = {
  readonly alert: string;
  readonly expr: string;
  /** So long it must be so. */
  readonly for: string;
  readonly labels: { readonly severity: 'critical' | 'warning' };
  readonly annotations: { readonly summary: string; readonly description: string };
};

const OPERATOR = { job: COMPONENTS.operator } as const;
const EXTENSION_SERVER = { job: COMPONENTS.extensionServer } as const;
const OVER = '5m';

/** All alerts, for what runs in a namespace; none of them needs another to be right. */
export function alerts(namespace: string): readonly Alert[] {
  return [
    highReconciliationErrorRate(),
    extensionServerDown(),
    highMemoryUsage(namespace),
    noOperatorLeads(),
    endpointsRefusedByEnvoy(),
    hookFailures(),
  ];
}

function highReconciliationErrorRate(): Alert {
  const errors = sumOf(rateOf(controllerMetrics.reconcileErrors, OPERATOR, OVER));
  const all = sumOf(rateOf(controllerMetrics.reconciles, OPERATOR, OVER));
  return {
    alert: 'HighReconciliationErrorRate',
    expr: `${errors} / ${all} > 0.1`,
    for: '10m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'More than a tenth of all reconciliations fail',
      description:
        'The share is {{ $value | humanizePercentage }}. The log of the operator tells which objects, and why; traffic goes on with what was decided last.',
    },
  };
}

function extensionServerDown(): Alert {
  const up = seriesOf(foreignMetrics.up, EXTENSION_SERVER);
  return {
    alert: 'ExtensionServerDown',
    expr: `${up} == 0 or absent(${up})`,
    for: '3m',
    labels: { severity: 'critical' },
    annotations: {
      summary: 'An extension server is down, or there is none',
      description:
        'Envoys keep the endpoints that they have. While no extension server is ready, Envoy Gateway translates nothing, and an Envoy that starts gets no endpoints of the mesh.',
    },
  };
}

function highMemoryUsage(namespace: string): Alert {
  const manager = { namespace, container: 'manager' };
  const perContainer = (expression: string) => maxOf(expression, ['namespace', 'pod', 'container']);
  const inUse = perContainer(seriesOf(foreignMetrics.memoryInUse, manager));
  // Without a limit the limit is 0.
  const limit = perContainer(`${seriesOf(foreignMetrics.memoryLimit, manager)} > 0`);
  const declared = { ...manager, resource: 'memory' };
  const declaredLimit = perContainer(seriesOf(foreignMetrics.declaredLimit, declared));
  return {
    alert: 'HighMemoryUsage',
    expr: `${inUse} / (${limit} or ${declaredLimit}) > 0.8`,
    for: '10m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'The operator uses most of its memory',
      description:
        'It uses {{ $value | humanizePercentage }} of its limit. Raise operator.resources.limits.memory before it is killed; a heap profile is at port 8080 under /debug/pprof/heap.',
    },
  };
}

function noOperatorLeads(): Alert {
  return {
    alert: 'NoOperatorLeads',
    expr: `absent(${seriesOf(leaderMetrics.leads, { ...OPERATOR, name: COMPONENTS.operator })} == 1)`,
    for: '5m',
    labels: { severity: 'critical' },
    annotations: {
      summary: 'No operator works',
      description:
        'None runs, or none holds the lease. Traffic goes on, but health is no longer checked, and changes of routes and endpoints may not take effect.',
    },
  };
}

function endpointsRefusedByEnvoy(): Alert {
  const refused = rateOf(extensionMetrics.edsAnswers, { ...EXTENSION_SERVER, answer: 'nack' }, OVER);
  return {
    alert: 'EndpointsRefusedByEnvoy',
    expr: `${sumOf(refused)} > 0`,
    for: '5m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'Envoy refuses endpoints',
      description:
        'Envoy keeps the endpoints that it had, and they become older. The log of the extension server has what Envoy said.',
    },
  };
}

function hookFailures(): Alert {
  const failures = rateOf(extensionMetrics.hookFailures, EXTENSION_SERVER, OVER);
  return {
    alert: 'HookFailures',
    expr: `${sumOf(failures, ['hook'])} > 0`,
    for: '5m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'What Envoy Gateway translates is passed on unchanged, because changing it failed',
      description:
        'Routes to the mesh that changed since may have no endpoints. The log of the extension server has the error of the hook {{ $labels.hook }}.',
    },
  };
}
