/* eslint-disable @typescript-eslint/no-deprecated -- its replacement needs Grafana 12 or newer */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { COMPONENTS, RELAY } from '../../src/api/names.ts';
import {
  foreignMetrics,
  controlMetrics,
  controllerMetrics,
  endpointMetrics,
  extensionMetrics,
  frontMetrics,
  grpcMetrics,
  healthMetrics,
  leaderMetrics,
  poolMetrics,
  queueMetrics,
  relayMetrics,
} from '../../src/telemetry/metrics.ts';
import { maxOf, quantileOf, rateOf, seriesOf, sumOf } from '../expression.ts';
import { dashboardOf } from './panels.ts';
import type { Graph, Row } from './panels.ts';

/** As wide as the screen makes it. */
const OVER = '$__rate_interval';
const OPERATOR = { job: COMPONENTS.operator } as const;
const EXTENSION_SERVER = { job: COMPONENTS.extensionServer } as const;
const RELAYS = { job: RELAY.job } as const;

/** All dashboards by their names: how the operator does, and how traffic is steered. */
export function dashboards(): ReadonlyMap<string, Dashboard> {
  return new Map([
    ['operator', dashboardOf('mesh-gateway-operator', 'mesh-gateway: operator', operatorRows())],
    ['traffic', dashboardOf('mesh-gateway-traffic', 'mesh-gateway: traffic', trafficRows())],
  ]);
}

function operatorRows(): readonly Row[] {
  return [
    { title: 'Reconciliation', graphs: [...reconciliations(), ...queues()] },
    { title: 'Health', graphs: healthGraphs() },
    { title: 'Tailnets', graphs: tailnetGraphs() },
    { title: 'Process', graphs: processGraphs(OPERATOR) },
  ];
}

function reconciliations(): readonly Graph[] {
  const { reconciles, reconcileErrors, reconcileSeconds, runningReconciles } = controllerMetrics;
  return [
    {
      title: 'Leader',
      description: 'Exactly one operator should be 1.',
      unit: 'short',
      lines: { '{{pod}}': seriesOf(leaderMetrics.leads, { ...OPERATOR, name: COMPONENTS.operator }) },
    },
    {
      title: 'Reconciles',
      description: 'Per second, by result.',
      unit: 'ops',
      lines: {
        '{{controller}} {{result}}': sumOf(rateOf(reconciles, OPERATOR, OVER), ['controller', 'result']),
      },
    },
    {
      title: 'Errors',
      description: 'Failed reconciles per second. The log of the operator has each error.',
      unit: 'ops',
      lines: { '{{controller}}': sumOf(rateOf(reconcileErrors, OPERATOR, OVER), ['controller']) },
    },
    {
      title: 'Duration of reconciles',
      description: '99th percentile, and the number in progress.',
      unit: 's',
      lines: {
        'p99 {{controller}}': quantileOf(0.99, reconcileSeconds, OPERATOR, {
          by: ['controller'],
          over: OVER,
        }),
        'running {{controller}}': sumOf(seriesOf(runningReconciles, OPERATOR), ['controller']),
      },
    },
  ];
}

function queues(): readonly Graph[] {
  const { queueDepth, queueWaitSeconds, queueRetries, queueLongestRunningSeconds } = queueMetrics;
  return [
    {
      title: 'Queue depth',
      description: 'Keys in the queues. A queue that never becomes empty is overloaded.',
      unit: 'short',
      lines: { '{{name}}': sumOf(seriesOf(queueDepth, OPERATOR), ['name']) },
    },
    {
      title: 'Time in the queue',
      description: '99th percentile.',
      unit: 's',
      lines: { '{{name}}': quantileOf(0.99, queueWaitSeconds, OPERATOR, { by: ['name'], over: OVER }) },
    },
    {
      title: 'Retries',
      description: 'Keys retried after an error.',
      unit: 'ops',
      lines: { '{{name}}': sumOf(rateOf(queueRetries, OPERATOR, OVER), ['name']) },
    },
    {
      title: 'Oldest reconcile in progress',
      description: 'A reconcile is aborted after 5 minutes.',
      unit: 's',
      lines: { '{{name}}': seriesOf(queueLongestRunningSeconds, OPERATOR) },
    },
  ];
}

function healthGraphs(): readonly Graph[] {
  const { healthSuccess, healthFailure, healthUnknown, healthSeconds, healthStartLagSeconds } = healthMetrics;
  const { endpointHealthy, endpointsNotShown, endpoints, discoveredEndpoints } = endpointMetrics;
  const perEndpoint = maxOf(seriesOf(endpointHealthy, OPERATOR), ['namespace', 'name', 'endpoint']);
  const rateByTailnet = (metric: typeof healthSuccess | typeof healthFailure | typeof healthUnknown) =>
    sumOf(rateOf(metric, OPERATOR, OVER), ['tailnet']);
  return [
    {
      title: 'Endpoints',
      description: 'Endpoints of all MeshEndpoints, by tailnet and status.',
      unit: 'short',
      lines: { '{{tailnet}} {{status}}': maxOf(seriesOf(endpoints, OPERATOR), ['tailnet', 'status']) },
    },
    {
      title: 'Discovered endpoints',
      description:
        'Endpoints of each MeshEndpoints with tagSelectors, which come and go with the tags of devices.',
      unit: 'short',
      lines: {
        '{{namespace}}/{{name}}': maxOf(seriesOf(discoveredEndpoints, OPERATOR), ['namespace', 'name']),
      },
    },
    {
      title: 'Unhealthy endpoints',
      description:
        'Each checked endpoint that is down; and the number of checked endpoints without a series of their own, because there are more than 1000.',
      unit: 'short',
      lines: {
        '{{namespace}}/{{name}} {{endpoint}}': `1 - ${perEndpoint} > 0`,
        'not shown': `${sumOf(seriesOf(endpointsNotShown, OPERATOR))} > 0`,
      },
    },
    {
      title: 'Health checks',
      description:
        'Per second, by tailnet and result. Unknown: a check failed before it reached the service, which changes no status.',
      unit: 'ops',
      lines: {
        '{{tailnet}} success': rateByTailnet(healthSuccess),
        '{{tailnet}} failure': rateByTailnet(healthFailure),
        '{{tailnet}} unknown': rateByTailnet(healthUnknown),
      },
    },
    {
      title: 'Duration of health checks',
      description: '99th percentile by type, and of the time by which checks start late.',
      unit: 's',
      lines: {
        'p99 {{type}}': quantileOf(0.99, healthSeconds, OPERATOR, { by: ['type'], over: OVER }),
        'p99 start lag': quantileOf(0.99, healthStartLagSeconds, OPERATOR, { over: OVER }),
      },
    },
  ];
}

function tailnetGraphs(): readonly Graph[] {
  const { joinKeys, devicesDeleted, controlRequests, snapshotAge } = controlMetrics;
  const { poolMembers, orphans } = poolMetrics;
  return [
    {
      title: 'Mesh pods',
      description: 'Desired mesh pods, by state.',
      unit: 'short',
      lines: { '{{tailnet}} {{state}}': maxOf(seriesOf(poolMembers, OPERATOR), ['tailnet', 'state']) },
    },
    {
      title: 'Join keys and devices',
      description:
        'Join keys per second, by result; deletions of devices per second, by result; and the offline devices that belong to no mesh pod.',
      unit: 'short',
      lines: {
        '{{tailnet}} key {{result}}': sumOf(rateOf(joinKeys, OPERATOR, OVER), ['tailnet', 'result']),
        '{{tailnet}} device {{result}}': sumOf(rateOf(devicesDeleted, OPERATOR, OVER), ['tailnet', 'result']),
        '{{tailnet}} orphans': maxOf(seriesOf(orphans, OPERATOR), ['tailnet']),
      },
    },
    {
      title: 'Requests to control APIs',
      description: 'Per second, by tailnet and status code.',
      unit: 'ops',
      lines: {
        '{{tailnet}} {{code}}': sumOf(rateOf(controlRequests, OPERATOR, OVER), ['tailnet', 'code']),
      },
    },
    {
      title: 'Age of device lists',
      description: 'Time since the devices of a tailnet were last listed.',
      unit: 's',
      lines: { '{{tailnet}}': maxOf(seriesOf(snapshotAge, OPERATOR), ['tailnet']) },
    },
  ];
}

function trafficRows(): readonly Row[] {
  return [
    { title: 'Endpoints', graphs: endpoints() },
    { title: 'Calls', graphs: [...calls(), ...hooks()] },
    { title: 'Proxies of mesh pods', graphs: proxies() },
    { title: 'UDP through mesh pods', graphs: datagrams() },
    { title: 'Process', graphs: processGraphs(EXTENSION_SERVER) },
  ];
}

function endpoints(): readonly Graph[] {
  const { edsStreams, edsPushes, edsAnswers, edsPushSeconds, unresolved } = extensionMetrics;
  return [
    {
      title: 'EDS streams',
      description: 'One for each mesh cluster of each Envoy.',
      unit: 'short',
      lines: { '{{pod}}': seriesOf(edsStreams, EXTENSION_SERVER) },
    },
    {
      title: 'Endpoint push lag',
      description: 'Time from a change to the assignment sent: median and 99th percentile.',
      unit: 's',
      lines: {
        p50: quantileOf(0.5, edsPushSeconds, EXTENSION_SERVER, { over: OVER }),
        p99: quantileOf(0.99, edsPushSeconds, EXTENSION_SERVER, { over: OVER }),
      },
    },
    {
      title: 'Endpoint pushes',
      description:
        'Sent, acknowledged (ack) and rejected (nack). After a nack Envoy keeps its previous endpoints.',
      unit: 'ops',
      lines: {
        sent: sumOf(rateOf(edsPushes, EXTENSION_SERVER, OVER)),
        '{{answer}}': sumOf(rateOf(edsAnswers, EXTENSION_SERVER, OVER), ['answer']),
      },
    },
    {
      title: 'References without traffic',
      description: 'Backend references and endpoints without traffic, by reason.',
      unit: 'short',
      lines: { '{{reason}}': `max by (reason) (${seriesOf(unresolved, EXTENSION_SERVER)})` },
    },
  ];
}

function datagrams(): readonly Graph[] {
  const { relayPackets, relayAssociations, relayDropped } = relayMetrics;
  return [
    {
      title: 'Datagrams',
      description: 'Per second, by direction and result.',
      unit: 'ops',
      lines: {
        '{{tailnet}} {{direction}} {{result}}': sumOf(rateOf(relayPackets, RELAYS, OVER), [
          'tailnet',
          'direction',
          'result',
        ]),
      },
    },
    {
      title: 'Associations',
      description: 'One for each client of each UDP endpoint, until it has been idle for a minute.',
      unit: 'short',
      lines: { '{{pod}}': seriesOf(relayAssociations, RELAYS) },
    },
    {
      title: 'Dropped datagrams',
      description: 'Per second, by reason.',
      unit: 'ops',
      lines: { '{{tailnet}} {{reason}}': sumOf(rateOf(relayDropped, RELAYS, OVER), ['tailnet', 'reason']) },
    },
  ];
}

function proxies(): readonly Graph[] {
  const { frontConnections, frontDials, frontRefused } = frontMetrics;
  return [
    {
      title: 'Connections to devices',
      description: 'Connections a second that proxies of mesh pods have tried, by result.',
      unit: 'ops',
      lines: { '{{tailnet}} {{result}}': sumOf(rateOf(frontDials, RELAYS, OVER), ['tailnet', 'result']) },
    },
    {
      title: 'Open connections',
      description: 'Of each mesh pod. Beyond FRONT_MAX_CONNECTIONS further ones are reset.',
      unit: 'short',
      lines: { '{{pod}}': seriesOf(frontConnections, RELAYS) },
    },
    {
      title: 'Refused connections',
      description:
        'Per second, by reason: a caller or a destination that is not listed, an address that no device has.',
      unit: 'ops',
      lines: { '{{tailnet}} {{reason}}': sumOf(rateOf(frontRefused, RELAYS, OVER), ['tailnet', 'reason']) },
    },
  ];
}

function calls(): readonly Graph[] {
  const { grpcRequests, grpcErrors, grpcSeconds } = grpcMetrics;
  return [
    {
      title: 'Calls',
      description: 'Calls per second that ended, by method.',
      unit: 'ops',
      lines: { '{{method}}': sumOf(rateOf(grpcRequests, EXTENSION_SERVER, OVER), ['method']) },
    },
    {
      title: 'Failed calls',
      description: 'By method and status code.',
      unit: 'ops',
      lines: { '{{method}} {{code}}': sumOf(rateOf(grpcErrors, EXTENSION_SERVER, OVER), ['method', 'code']) },
    },
    {
      title: 'Duration of calls',
      description: '99th percentile. A stream counts as one call.',
      unit: 's',
      lines: {
        '{{method}}': quantileOf(0.99, grpcSeconds, EXTENSION_SERVER, { by: ['method'], over: OVER }),
      },
    },
  ];
}

function hooks(): readonly Graph[] {
  const { meshClusters, hookFailures } = extensionMetrics;
  return [
    {
      title: 'Hooks',
      description:
        'Clusters with mesh endpoints that were returned, and clusters that stayed unchanged because of an error.',
      unit: 'ops',
      lines: {
        'clusters {{hook}}': sumOf(rateOf(meshClusters, EXTENSION_SERVER, OVER), ['hook']),
        'failures {{hook}}': sumOf(rateOf(hookFailures, EXTENSION_SERVER, OVER), ['hook']),
      },
    },
  ];
}

function processGraphs(job: { readonly job: string }): readonly Graph[] {
  const { processMemory, processSeconds, eventLoopLag, up } = foreignMetrics;
  return [
    {
      title: 'Pods',
      description: 'Pods that are up.',
      unit: 'short',
      lines: { up: sumOf(seriesOf(up, job)) },
    },
    {
      title: 'Memory',
      description: 'Resident memory of each process.',
      unit: 'bytes',
      lines: { '{{pod}}': seriesOf(processMemory, job) },
    },
    {
      title: 'CPU',
      description: 'CPU of each process, 100% is one core.',
      unit: 'percentunit',
      lines: { '{{pod}}': rateOf(processSeconds, job, OVER) },
    },
    {
      title: 'Event loop lag',
      description: '99th percentile of the delay of the event loop.',
      unit: 's',
      lines: { '{{pod}}': seriesOf(eventLoopLag, job) },
    },
  ];
}
