import { COMPONENTS, OPERATOR_CONTAINER, RELAY } from '../../src/api/names.ts';
import {
  foreignMetrics,
  controllerMetrics,
  endpointMetrics,
  extensionMetrics,
  frontMetrics,
  leaderMetrics,
  poolMetrics,
  relayMetrics,
} from '../../src/telemetry/metrics.ts';
import { maxOf, rateOf, seriesOf, sumOf } from '../expression.ts';

export type Alert = {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: 'critical' | 'warning' };
  readonly annotations: { readonly summary: string; readonly description: string };
};

const OPERATOR = { job: COMPONENTS.operator } as const;
const EXTENSION_SERVER = { job: COMPONENTS.extensionServer } as const;
const OVER = '5m';

/** The alerts for an installation in a namespace. */
export function alerts(namespace: string): readonly Alert[] {
  return [
    highReconciliationErrorRate(),
    extensionServerDown(),
    highMemoryUsage(namespace),
    noOperatorLeads(),
    endpointsRefusedByEnvoy(),
    hookFailures(),
    meshPoolDegraded(),
    meshEndpointUnhealthy(),
    relayDropsDatagrams(),
    meshProxyRefuses(),
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
      summary: 'More than 10% of reconciles fail',
      description:
        '{{ $value | humanizePercentage }} of reconciles fail. The log of the operator has the objects and the errors. Traffic continues with the last configuration.',
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
      summary: 'An extension server is down, or none exists',
      description:
        'Running Envoys keep their endpoints. While no extension server is ready, Envoy Gateway does not translate, and a new Envoy gets no mesh endpoints.',
    },
  };
}

function highMemoryUsage(namespace: string): Alert {
  const manager = { namespace, container: OPERATOR_CONTAINER };
  const perContainer = (expression: string) => maxOf(expression, ['namespace', 'pod', 'container']);
  const inUse = perContainer(seriesOf(foreignMetrics.memoryInUse, manager));
  // cAdvisor reports 0 where there is no limit.
  const limit = perContainer(`${seriesOf(foreignMetrics.memoryLimit, manager)} > 0`);
  const declared = { ...manager, resource: 'memory' };
  const declaredLimit = perContainer(seriesOf(foreignMetrics.declaredLimit, declared));
  return {
    alert: 'HighMemoryUsage',
    expr: `${inUse} / (${limit} or ${declaredLimit}) > 0.8`,
    for: '10m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'The operator uses more than 80% of its memory limit',
      description:
        'It uses {{ $value | humanizePercentage }} of its limit. Raise operator.resources.limits.memory before it is killed. Port 8080 serves a heap profile at /debug/pprof/heap.',
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
      summary: 'No operator is the leader',
      description:
        'No operator runs, or none holds the lease. Traffic continues, but health is not checked, and changes of routes and endpoints may not take effect.',
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
      summary: 'Envoy rejects endpoints',
      description:
        'Envoy keeps its previous endpoints, which become stale. The log of the extension server has the error that Envoy reported.',
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
      summary: 'The extension server fails to change translations of Envoy Gateway',
      description:
        'Clusters stay unchanged in translations, so mesh routes that changed may have no endpoints. The log of the extension server has the error of the hook {{ $labels.hook }}.',
    },
  };
}

function meshPoolDegraded(): Alert {
  const notReady = seriesOf(poolMetrics.poolMembers, { ...OPERATOR, state: 'not_ready' });
  return {
    alert: 'MeshPoolDegraded',
    expr: `${maxOf(notReady, ['tailnet'])} > 0`,
    for: '15m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'A tailnet has fewer ready mesh pods than desired',
      description:
        '{{ $value }} mesh pods of the MeshTailnet {{ $labels.tailnet }} are not ready. Traffic passes through those that are. The condition PoolReady of the MeshTailnet has the cause and the fix.',
    },
  };
}

function meshEndpointUnhealthy(): Alert {
  const healthy = maxOf(seriesOf(endpointMetrics.endpointHealthy, OPERATOR), [
    'namespace',
    'name',
    'endpoint',
  ]);
  return {
    alert: 'MeshEndpointUnhealthy',
    expr: `${healthy} == 0`,
    for: '5m',
    labels: { severity: 'warning' },
    annotations: {
      summary:
        'Endpoint {{ $labels.endpoint }} of MeshEndpoints {{ $labels.namespace }}/{{ $labels.name }} is unhealthy',
      description:
        'Its health checks fail, or have no result yet, and it gets no traffic while others are healthy. status.endpoints of the MeshEndpoints has the error. Check that the service runs and answers on its port, and that the tailnet lets mesh pods reach it. docs/mesh-endpoints.md explains the status.',
    },
  };
}

function relayDropsDatagrams(): Alert {
  const relays = { job: RELAY.job };
  const dropped = sumOf(rateOf(relayMetrics.relayDropped, relays, OVER), ['tailnet']);
  const all = sumOf(rateOf(relayMetrics.relayPackets, relays, OVER), ['tailnet']);
  return {
    alert: 'RelayDropsDatagrams',
    expr: `${dropped} / ${all} > 0.01`,
    for: '10m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'More than 1% of the datagrams of a tailnet are dropped',
      description:
        '{{ $value | humanizePercentage }} of the datagrams of the MeshTailnet {{ $labels.tailnet }} are dropped by its relays. The label reason of mesh_gateway_relay_dropped_total has the cause.',
    },
  };
}

function meshProxyRefuses(): Alert {
  const refused = sumOf(rateOf(frontMetrics.frontRefused, { job: RELAY.job }, OVER), ['tailnet', 'reason']);
  return {
    alert: 'MeshProxyRefusesConnections',
    expr: `${refused} > 0.1`,
    for: '10m',
    labels: { severity: 'warning' },
    annotations: {
      summary: 'The proxy of mesh pods keeps refusing connections',
      description:
        'The proxies of the mesh pods of the MeshTailnet {{ $labels.tailnet }} refuse {{ $value | humanize }} connections a second with the reason {{ $labels.reason }}: caller is a pod that is neither an Envoy nor an operator, destination is an address that no MeshEndpoints declares. The log of the container relay has the addresses.',
    },
  };
}
