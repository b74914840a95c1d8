import type { MessageInitShape } from '@bufbuild/protobuf';
import type { EnvoyHealthCheck } from '../../traffic/envoy-health-check.ts';
import type { EnvoyClusterSettings } from '../../traffic/envoy-cluster-settings.ts';
import { durationOf, encode } from '../encode.ts';
import {
  HealthCheckSchema,
  HeaderValueOption_HeaderAppendAction as AppendAction,
} from '../proto/envoy/config/core/v3_pb.ts';
import type { HealthCheck_HttpHealthCheckSchema } from '../proto/envoy/config/core/v3_pb.ts';
import { CodecClientType } from '../proto/envoy/type/v3_pb.ts';

/** The checks of a cluster begin spread over so much of an interval, and no more than so long. */
const JITTER = { part: 0.1, mostMs: 1000 } as const;

/**
 * Envoy's own check of a cluster, where it can be one: Envoy refuses a cluster that checks by gRPC what does not speak
 * HTTP/2. The Host comes with each endpoint.
 */
export function encodeCheck({ healthCheck, protocol }: EnvoyClusterSettings): Uint8Array | undefined {
  if (!healthCheck || protocol === 'UDP') return undefined;
  if (healthCheck.is === 'GRPC' && protocol !== 'HTTP/2') return undefined;
  return encode(HealthCheckSchema, {
    interval: durationOf(healthCheck.intervalMs),
    // Otherwise a cluster that has had no traffic yet is checked once a minute.
    noTrafficInterval: durationOf(healthCheck.intervalMs),
    timeout: durationOf(Math.min(healthCheck.timeoutMs, healthCheck.intervalMs)),
    initialJitter: durationOf(Math.min(Math.ceil(healthCheck.intervalMs * JITTER.part), JITTER.mostMs)),
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
  switch (check.is) {
    case 'HTTP':
      return { case: 'httpHealthCheck', value: { ...httpCheck(check), codecClientType } };
    case 'TCP':
      return { case: 'tcpHealthCheck', value: {} };
    case 'GRPC':
      return { case: 'grpcHealthCheck', value: { serviceName: check.service ?? '' } };
  }
}

type HttpCheck = Extract<EnvoyHealthCheck, { readonly is: 'HTTP' }>;

function httpCheck({ path, expectedStatus, headers }: HttpCheck) {
  return {
    path,
    expectedStatuses: [{ start: BigInt(expectedStatus), end: BigInt(expectedStatus + 1) }],
    requestHeadersToAdd: headers.filter(([name]) => isOurs(name)).map(headerOf),
  } satisfies MessageInitShape<typeof HealthCheck_HttpHealthCheckSchema>;
}

/** Envoy refuses a cluster whose check sets these. */
function isOurs(name: string): boolean {
  return name.toLowerCase() !== 'host' && !name.startsWith(':');
}

/** Envoy takes % for the beginning of a variable. */
function headerOf([key, value]: readonly [name: string, value: string]) {
  const header = { key, value: value.replaceAll('%', '%%') };
  return { header, appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD };
}
