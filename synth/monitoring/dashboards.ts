/* eslint-disable @typescript-eslint/no-deprecated -- what takes its place is for Grafana 12 and newer only */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { COMPONENTS } from '../../src/api/names.ts';
import {
  foreignMetrics,
  controllerMetrics,
  extensionMetrics,
  grpcMetrics,
  leaderMetrics,
  queueMetrics,
} from '../../src/telemetry/metrics.ts';
import { quantileOf, rateOf, seriesOf, sumOf } from '../expression.ts';
import { dashboardOf } from './panels.ts';
import type { Graph, Row } from './panels.ts';

/** As wide as the screen makes it. */
const OVER = '$__rate_interval';
const OPERATOR = { job: COMPONENTS.operator } as const;
const EXTENSION_SERVER = { job: COMPONENTS.extensionServer } as const;

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
    { title: 'Process', graphs: processGraphs(OPERATOR) },
  ];
}

function reconciliations(): readonly Graph[] {
  const { reconciles, reconcileErrors, reconcileSeconds, runningReconciles } = controllerMetrics;
  return [
    {
      title: 'Who leads',
      says: 'Exactly one operator has 1.',
      unit: 'short',
      lines: { '{{pod}}': seriesOf(leaderMetrics.leads, { ...OPERATOR, name: COMPONENTS.operator }) },
    },
    {
      title: 'Reconciliations',
      says: 'How many end, and how.',
      unit: 'ops',
      lines: {
        '{{controller}} {{result}}': sumOf(rateOf(reconciles, OPERATOR, OVER), ['controller', 'result']),
      },
    },
    {
      title: 'Errors',
      says: 'The log of the operator has each of them.',
      unit: 'ops',
      lines: { '{{controller}}': sumOf(rateOf(reconcileErrors, OPERATOR, OVER), ['controller']) },
    },
    {
      title: 'How long they take',
      says: 'The longest of 100, and how many run now.',
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
      title: 'What waits',
      says: 'Keys in the queues. A queue that does not become empty has more to do than it can.',
      unit: 'short',
      lines: { '{{name}}': sumOf(seriesOf(queueDepth, OPERATOR), ['name']) },
    },
    {
      title: 'How long it waits',
      says: 'The longest of 100.',
      unit: 's',
      lines: { '{{name}}': quantileOf(0.99, queueWaitSeconds, OPERATOR, { by: ['name'], over: OVER }) },
    },
    {
      title: 'Retries',
      says: 'Keys that are looked at again after an error.',
      unit: 'ops',
      lines: { '{{name}}': sumOf(rateOf(queueRetries, OPERATOR, OVER), ['name']) },
    },
    {
      title: 'The oldest that still runs',
      says: 'After 5 minutes it is told to end.',
      unit: 's',
      lines: { '{{name}}': seriesOf(queueLongestRunningSeconds, OPERATOR) },
    },
  ];
}

function trafficRows(): readonly Row[] {
  return [
    { title: 'Endpoints', graphs: endpoints() },
    { title: 'Calls', graphs: [...calls(), ...hooks()] },
    { title: 'Process', graphs: processGraphs(EXTENSION_SERVER) },
  ];
}

function endpoints(): readonly Graph[] {
  const { edsStreams, edsPushes, edsAnswers, edsPushSeconds, unresolved } = extensionMetrics;
  return [
    {
      title: 'Streams of Envoys',
      says: 'One for each cluster of each Envoy.',
      unit: 'short',
      lines: { '{{pod}}': seriesOf(edsStreams, EXTENSION_SERVER) },
    },
    {
      title: 'From a change to Envoy',
      says: 'How long after a change endpoints were sent: half, and the longest of 100.',
      unit: 's',
      lines: {
        p50: quantileOf(0.5, edsPushSeconds, EXTENSION_SERVER, { over: OVER }),
        p99: quantileOf(0.99, edsPushSeconds, EXTENSION_SERVER, { over: OVER }),
      },
    },
    {
      title: 'Sent, and what Envoy said',
      says: 'A nack is a refusal: Envoy keeps what it had.',
      unit: 'ops',
      lines: {
        sent: sumOf(rateOf(edsPushes, EXTENSION_SERVER, OVER)),
        '{{answer}}': sumOf(rateOf(edsAnswers, EXTENSION_SERVER, OVER), ['answer']),
      },
    },
    {
      title: 'References without traffic',
      says: 'By the reason; the status of the MeshEndpoints has each of them.',
      unit: 'short',
      lines: { '{{reason}}': `max by (reason) (${seriesOf(unresolved, EXTENSION_SERVER)})` },
    },
  ];
}

function calls(): readonly Graph[] {
  const { grpcRequests, grpcErrors, grpcSeconds } = grpcMetrics;
  return [
    {
      title: 'Calls',
      says: 'That ended, by method.',
      unit: 'ops',
      lines: { '{{method}}': sumOf(rateOf(grpcRequests, EXTENSION_SERVER, OVER), ['method']) },
    },
    {
      title: 'Errors of calls',
      says: 'By method and status.',
      unit: 'ops',
      lines: { '{{method}} {{code}}': sumOf(rateOf(grpcErrors, EXTENSION_SERVER, OVER), ['method', 'code']) },
    },
    {
      title: 'How long calls take',
      says: 'The longest of 100; a stream is a call too.',
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
      says: 'Clusters with mesh endpoints that were answered, and calls that were answered unchanged after an error.',
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
    { title: 'Pods', says: 'That are up.', unit: 'short', lines: { up: sumOf(seriesOf(up, job)) } },
    {
      title: 'Memory',
      says: 'Of each process.',
      unit: 'bytes',
      lines: { '{{pod}}': seriesOf(processMemory, job) },
    },
    {
      title: 'CPU',
      says: 'Of one core, of each process.',
      unit: 'percentunit',
      lines: { '{{pod}}': rateOf(processSeconds, job, OVER) },
    },
    {
      title: 'Lag of the event loop',
      says: 'The longest of 100: everything else waits so long.',
      unit: 's',
      lines: { '{{pod}}': seriesOf(eventLoopLag, job) },
    },
  ];
}
