import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { encodeHealthCheck } from '../../../src/extension/envoy-cluster/health-check.ts';
import { HealthCheckSchema } from '../../../src/extension/proto/envoy/config/core/v3_pb.ts';
import type { EnvoyClusterSettings } from '../../../src/traffic/settings/envoy-cluster-settings.ts';
import {
  datagrams,
  GRPC_CHECK,
  HTTP_CHECK,
  settings,
  TCP_CHECK,
} from '../../support/extension/cluster-settings.ts';

function read(wanted: EnvoyClusterSettings) {
  const bytes = encodeHealthCheck(wanted);
  return bytes && fromBinary(HealthCheckSchema, bytes);
}

describe("Envoy's health check", () => {
  it('has the configured times and thresholds, also while a cluster has no traffic', () => {
    expect(read(settings({ healthCheck: TCP_CHECK }))).toMatchObject({
      interval: { seconds: 5n, nanos: 0 },
      noTrafficHealthyInterval: { seconds: 5n, nanos: 0 },
      timeout: { seconds: 1n, nanos: 500_000_000 },
      initialJitter: { seconds: 0n, nanos: 500_000_000 },
      healthyThreshold: 2,
      unhealthyThreshold: 3,
    });
  });

  it.each([
    [60_000, { seconds: 1n, nanos: 0 }],
    [200, { seconds: 0n, nanos: 200_000_000 }],
  ])('is repeated sooner before the first traffic, and after a success: %i ms', (intervalMs, sooner) => {
    expect(read(settings({ healthCheck: { ...TCP_CHECK, intervalMs } }))).toMatchObject({
      noTrafficInterval: sooner,
      healthyEdgeInterval: sooner,
    });
  });

  it.each([
    [60_000, { seconds: 3n, nanos: 0 }],
    [2000, { seconds: 2n, nanos: 0 }],
  ])('tries a failed endpoint again within 3 s, interval %i ms', (intervalMs, unhealthyInterval) => {
    expect(read(settings({ healthCheck: { ...TCP_CHECK, intervalMs } }))).toMatchObject({
      unhealthyInterval,
    });
  });

  it('keeps the interval between the failures that make an endpoint unhealthy', () => {
    const check = { ...TCP_CHECK, intervalMs: 60_000 };
    expect(read(settings({ healthCheck: check }))?.unhealthyEdgeInterval).toMatchObject({ seconds: 60n });
  });

  it.each([
    [
      { intervalMs: 1000, timeoutMs: 4000 },
      { timeout: { seconds: 1n }, initialJitter: { nanos: 100_000_000 } },
    ],
    [{ intervalMs: 60_000 }, { initialJitter: { seconds: 1n, nanos: 0 } }],
    [
      { intervalMs: 1 },
      { interval: { seconds: 0n, nanos: 1_000_000 }, initialJitter: { seconds: 0n, nanos: 1_000_000 } },
    ],
  ])('has a timeout and an initial jitter within its interval: %j', (times, expected) => {
    expect(read(settings({ healthCheck: { ...TCP_CHECK, ...times } }))).toMatchObject(expected);
  });

  it('by HTTP expects one status at a path, with the Host of each endpoint', () => {
    expect(read(settings({ healthCheck: HTTP_CHECK }))?.healthChecker).toMatchObject({
      case: 'httpHealthCheck',
      value: {
        host: '',
        path: '/ready?full=1',
        expectedStatuses: [{ start: 204n, end: 205n }],
        codecClientType: 0,
      },
    });
  });

  it('by HTTP uses the version of the cluster', () => {
    expect(
      read(settings({ protocol: 'HTTP/2', healthCheck: HTTP_CHECK }))?.healthChecker.value,
    ).toMatchObject({
      codecClientType: 1,
    });
  });

  it('by HTTP sends literal headers, except those for which Envoy rejects a cluster', () => {
    const headers = [
      [':path', '/'],
      ['Host', 'a'],
      ['x-share', '100% of %REQ(a)%'],
    ] as const;
    expect(read(settings({ healthCheck: { ...HTTP_CHECK, headers } }))?.healthChecker.value).toMatchObject({
      requestHeadersToAdd: [{ header: { key: 'x-share', value: '100%% of %%REQ(a)%%' }, appendAction: 2 }],
    });
  });

  it('by TCP only connects', () => {
    expect(read(settings({ protocol: 'TCP', healthCheck: TCP_CHECK }))?.healthChecker.case).toBe(
      'tcpHealthCheck',
    );
  });

  it.each([
    [GRPC_CHECK, 'shop.Cart'],
    [{ ...TCP_CHECK, type: 'GRPC' } as const, ''],
  ])('by gRPC checks a service, or the server: %#', (check, serviceName) => {
    expect(read(settings({ protocol: 'HTTP/2', healthCheck: check }))?.healthChecker).toMatchObject({
      case: 'grpcHealthCheck',
      value: { serviceName, authority: '' },
    });
  });

  it.each([
    ['by gRPC under HTTP/1.1, for which Envoy refuses a cluster', settings({ healthCheck: GRPC_CHECK })],
    ['of datagrams', { ...datagrams(), healthCheck: TCP_CHECK }],
    ['if the settings have none', settings()],
  ])('does not exist %s', (_, wanted) => {
    expect(encodeHealthCheck(wanted)).toBeUndefined();
  });
});
