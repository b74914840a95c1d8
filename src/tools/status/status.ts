import { COMPONENTS } from '../../api/names.ts';
import type { Problem } from '../../api/problem.ts';
import type { Reason } from '../../api/reasons.ts';
import { jsonObjectIn } from '../../api/json.ts';
import { hasReported, lastTranslationOf } from '../../traffic/translation-report.ts';
import { isReady, numberAt, textAt, textsAt } from '../doctor/observed.ts';
import type { Reading } from '../doctor/observed.ts';
import type { Declarations } from '../check/objects.ts';
import { gatewayOf, servingIn } from '../envoy/admin.ts';
import { unreadPod } from './envoys.ts';
import type { EnvoyStatus } from './envoys.ts';

/** What was read of a pod of the extension server; each text, or why it could not be read. */
export type ReadServer = {
  readonly pod: string;
  readonly isReady: boolean;
  readonly metrics: ReadText;
  readonly log: ReadText;
};

type ReadText = { readonly text: string } | { readonly why: string };

/** What a status is made of. */
export type StatusInput = {
  readonly declarations: Declarations;
  /** The pods of Envoys. */
  readonly envoys: Reading;
  readonly servers: readonly ReadServer[];
  /** Why the pods of the extension server could not be read. */
  readonly why: string | undefined;
};

/** A Gateway with routes to MeshEndpoints. A field that is not known is absent. */
type GatewayStatus = {
  readonly gateway: string;
  /** The hash of what Envoy Gateway must translate. */
  readonly revision: string;
  /** Whether Envoy Gateway has reported that it has translated it. */
  readonly isTranslated: boolean;
  /** When Envoy Gateway first accepted the binding of the Gateway. */
  readonly acceptedSince?: string;
  readonly envoys?: { readonly ready: number; readonly total: number };
  /** Endpoints that its Envoys have rejected, by the logs. */
  readonly rejections?: number;
};

/** A pod of the extension server, since it has started. */
type ServerStatus = {
  readonly pod: string;
  readonly isReady: boolean;
  readonly streams?: number;
  readonly acknowledged?: number;
  readonly rejected?: number;
  readonly translations?: number;
  readonly failures?: number;
};

/** Endpoints that an Envoy has rejected, as the extension server has logged it. */
type Rejection = {
  readonly time: string;
  readonly pod: string;
  readonly gateway: string;
  readonly clusters: readonly string[];
  /** How many there were since the line before. */
  readonly count: number;
  readonly error: string;
};

/** What Envoy Gateway, Envoys and the extension server have made of the objects. */
export type Status = {
  readonly gateways: readonly GatewayStatus[];
  readonly servers: readonly ServerStatus[];
  readonly rejections: readonly Rejection[];
  /** What each Envoy has, and where that differs from the objects; only if it was asked for. */
  readonly envoys?: readonly EnvoyStatus[];
  readonly differences?: readonly Problem[];
  /** What is not known, and why. */
  readonly unknown: readonly Problem[];
};

/** The status by what was read. */
export function statusOf({ declarations, envoys, servers, why }: StatusInput): Status {
  const rejections = servers
    .flatMap(rejectionsIn)
    .sort((one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0));
  const hasAllLogs = why === undefined && servers.length > 0 && servers.every(({ log }) => 'text' in log);
  const unread = servers.flatMap(({ pod, metrics, log }) => [
    ...('why' in metrics ? [unreadPod(`metrics of pod ${pod}: ${metrics.why}`, pod)] : []),
    ...('why' in log ? [unreadPod(`log of pod ${pod}: ${log.why}`, pod)] : []),
  ]);
  return {
    gateways: gatewaysIn(declarations, envoys, hasAllLogs ? rejections : undefined),
    servers: servers.map(serverStatusOf),
    rejections,
    unknown: [
      ...declarations.findings.filter(isOfBindings),
      ...(envoys.why === undefined ? [] : [unreadPod(`Envoys: ${envoys.why}`)]),
      ...(why === undefined ? [] : [unreadPod(`extension servers: ${why}`)]),
      ...unread,
    ],
  };
}

function isOfBindings({ reason, about }: Problem): boolean {
  return reason === 'NotRead' && about?.kind === 'MeshBinding';
}

function gatewaysIn(
  declarations: Declarations,
  envoys: Reading,
  rejections: readonly Rejection[] | undefined,
): readonly GatewayStatus[] {
  const servingOf = servingIn(declarations);
  return declarations.objects.flatMap(({ resource }) => {
    if (resource?.kind !== 'MeshBinding') return [];
    const { metadata, spec } = resource;
    const { namespace = '', name: own } = metadata;
    const name = spec.targetRefs[0]?.name ?? own;
    const ref = { kind: 'Gateway', namespace, name } as const;
    const gateway = `${namespace}/${name}`;
    const serving = servingOf(gateway);
    const acceptedSince = lastTranslationOf(ref, resource);
    const count = rejections
      ?.filter(rejection => serving.includes(rejection.gateway))
      .reduce((sum, rejection) => sum + rejection.count, 0);
    const pods = envoys.items?.filter(pod => serving.includes(gatewayOf(pod)));
    return [
      {
        gateway,
        revision: spec.revision,
        isTranslated: hasReported(ref, resource),
        ...(acceptedSince === undefined ? {} : { acceptedSince }),
        ...(pods && pods.length > 0
          ? { envoys: { ready: pods.filter(isReady).length, total: pods.length } }
          : {}),
        ...(count === undefined ? {} : { rejections: count }),
      },
    ];
  });
}

function serverStatusOf({ pod, isReady: ready, metrics }: ReadServer): ServerStatus {
  const one = { pod, isReady: ready };
  if ('why' in metrics) return one;
  const samples = samplesIn(metrics.text);
  const sum = (name: string, label = '') =>
    samples
      .filter(sample => sample.name === name && sample.labels.includes(label))
      .reduce((total, { value }) => total + value, 0);
  return {
    ...one,
    streams: sum('mesh_gateway_eds_streams'),
    acknowledged: sum('mesh_gateway_eds_answers_total', 'answer="ack"'),
    rejected: sum('mesh_gateway_eds_answers_total', 'answer="nack"'),
    translations: sum('grpc_server_requests_total', 'PostTranslateModify"'),
    failures: sum('mesh_gateway_hook_failures_total'),
  };
}

type Sample = { readonly name: string; readonly labels: string; readonly value: number };

/** Samples of Prometheus' text format; values of our labels have no line ends. */
function samplesIn(text: string): readonly Sample[] {
  return [...text.matchAll(/^([a-z_]+)(\{[^\n]*\})? ([0-9.e+]+)$/gm)].map(
    ([, name = '', labels = '', value = '']) => ({ name, labels, value: Number(value) }),
  );
}

/** The reason of the line that the extension server logs. */
const REJECTED: Reason = 'EndpointsRejected';

function rejectionsIn({ pod, log }: ReadServer): readonly Rejection[] {
  if ('why' in log) return [];
  return log.text.split('\n').flatMap(line => {
    // The last line may be cut.
    const fields = line.includes(REJECTED) ? jsonObjectIn(line) : undefined;
    if (fields?.['reason'] !== REJECTED) return [];
    return [
      {
        time: textAt(fields, 'time'),
        pod,
        gateway: textAt(fields, 'gateway'),
        clusters: textsAt(fields, 'clusters'),
        count: numberAt(fields, 'nacks'),
        error: textAt(fields, 'error'),
      },
    ];
  });
}

/** The labels of the pods of the extension server. */
export const SERVER_LABELS = { 'app.kubernetes.io/name': COMPONENTS.extensionServer } as const;
