import type { MessageInitShape } from '@bufbuild/protobuf';
import type { EnvoyHealthCheck } from '../../traffic/settings/envoy-health-check.ts';
import type { EnvoyClusterSettings } from '../../traffic/settings/envoy-cluster-settings.ts';
import { durationOf, encode } from '../encode.ts';
import {
  HealthCheckSchema,
  HeaderValueOption_HeaderAppendAction as AppendAction,
} from '../proto/envoy/config/core/v3_pb.ts';
import type { HealthCheck_HttpHealthCheckSchema } from '../proto/envoy/config/core/v3_pb.ts';
import { CodecClientType } from '../proto/envoy/type/v3_pb.ts';

/** The first health check is delayed by up to a tenth of the interval, at most a second. */
const JITTER = { fraction: 0.1, maxMs: 1000 } as const;

/** Between a successful check and those that confirm it, and between all checks of a new cluster until one is healthy. */
const RECHECK_MS = 1000;

/** Between the checks of an unhealthy endpoint: Envoy has no backoff, so those that never return are checked as often. */
const UNHEALTHY_MS = 3000;

/**
 * Encodes the active health check of a cluster; undefined if it has none that Envoy accepts: gRPC health checks require
 * HTTP/2. The Host is set for each endpoint.
 */
export function encodeHealthCheck({ healthCheck, protocol }: EnvoyClusterSettings): Uint8Array | undefined {
  if (!healthCheck || protocol === 'UDP') return undefined;
  if (healthCheck.type === 'GRPC' && protocol !== 'HTTP/2') return undefined;
  return encode(HealthCheckSchema, {
    interval: durationOf(healthCheck.intervalMs),
    // Until the first connection of a cluster: its endpoints, or the mesh pods before them, may still be starting.
    noTrafficInterval: durationOf(Math.min(healthCheck.intervalMs, RECHECK_MS)),
    // By default once a minute.
    noTrafficHealthyInterval: durationOf(healthCheck.intervalMs),
    unhealthyInterval: durationOf(Math.min(healthCheck.intervalMs, UNHEALTHY_MS)),
    // By default the one above: endpoints would become unhealthy sooner than the interval and the threshold allow.
    unhealthyEdgeInterval: durationOf(healthCheck.intervalMs),
    healthyEdgeInterval: durationOf(Math.min(healthCheck.intervalMs, RECHECK_MS)),
    timeout: durationOf(Math.min(healthCheck.timeoutMs, healthCheck.intervalMs)),
    initialJitter: durationOf(Math.min(Math.ceil(healthCheck.intervalMs * JITTER.fraction), JITTER.maxMs)),
    healthyThreshold: healthCheck.healthyThreshold,
    unhealthyThreshold: healthCheck.unhealthyThreshold,
    healthChecker: checkerOf(
      healthCheck,
      protocol === 'HTTP/2' ? CodecClientType.HTTP2 : CodecClientType.HTTP1,
    ),
  });
}

type Checker = NonNullable<MessageInitShape<typeof HealthCheckSchema>['healthChecker']>;

function checkerOf(check: EnvoyHealthCheck, codecClientType: CodecClientType): Checker {
  switch (check.type) {
    case 'HTTP':
      return { case: 'httpHealthCheck', value: { ...httpCheck(check), codecClientType } };
    case 'TCP':
      return { case: 'tcpHealthCheck', value: {} };
    case 'GRPC':
      return { case: 'grpcHealthCheck', value: { serviceName: check.service ?? '' } };
  }
}

type HttpCheck = Extract<EnvoyHealthCheck, { readonly type: 'HTTP' }>;

function httpCheck({ path, expectedStatus, headers }: HttpCheck) {
  return {
    path,
    expectedStatuses: [{ start: BigInt(expectedStatus), end: BigInt(expectedStatus + 1) }],
    requestHeadersToAdd: headers.filter(([name]) => isAllowed(name)).map(headerOf),
  } satisfies MessageInitShape<typeof HealthCheck_HttpHealthCheckSchema>;
}

/** Envoy rejects a cluster whose health check sets Host or a pseudo-header. */
function isAllowed(name: string): boolean {
  return name.toLowerCase() !== 'host' && !name.startsWith(':');
}

/** Envoy expands %VARIABLES% in header values. */
function headerOf([key, value]: readonly [name: string, value: string]) {
  const header = { key, value: value.replaceAll('%', '%%') };
  return { header, appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD };
}
