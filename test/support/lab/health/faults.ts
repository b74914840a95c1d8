import type { ServiceName } from '../../../../lab/tailnet/backends.ts';
import { IS_LONG } from '../../eventually.ts';
import { CA } from './certificates.ts';
import {
  GRPC_SERVICE,
  startGrpcService,
  startHttpService,
  startHttpsService,
  startTcpService,
} from './services.ts';
import type { Service } from './services.ts';

/**
 * The timing of the checks in these tests. Only the long form expects times; in the short one a slow machine must not make a
 * good service time out, since an endpoint that was unhealthy before is reported as flapping.
 */
export const CHECK = {
  enabled: true,
  ...(IS_LONG ? { interval: '1s', timeout: '500ms' } : { interval: '2s', timeout: '2s' }),
  healthyThreshold: 2,
  unhealthyThreshold: 3,
} as const;

/** A service that fails on command. */
export type FaultyService = {
  readonly port: number;
  readonly bad: () => Promise<void>;
  readonly good: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** A way in which a service fails: the endpoint for it, and the error that its status shows. */
export type Fault = {
  readonly name: string;
  /** The kind of route to such a service, and the service of the lab that takes its place. */
  readonly kind: 'HTTPRoute' | 'GRPCRoute' | 'TCPRoute';
  readonly substitute: ServiceName;
  readonly endpoint: Readonly<Record<string, unknown>>;
  readonly healthCheck: Readonly<Record<string, unknown>>;
  readonly error: string;
  readonly start: () => Promise<FaultyService>;
};

/** Starts a service, and names its modes when it is good and when it is bad. */
function failing<Mode extends string>(
  startService: () => Promise<Service<Mode>>,
  good: NoInfer<Mode>,
  bad: NoInfer<Mode>,
): Fault['start'] {
  return async () => {
    const { port, set, close } = await startService();
    return { port, good: () => set(good), bad: () => set(bad), close };
  };
}

const HTTP = {
  kind: 'HTTPRoute',
  substitute: 'http',
  endpoint: { protocol: 'HTTP' },
  healthCheck: { type: 'HTTP', path: '/health' },
} as const;
const HTTPS = {
  kind: 'HTTPRoute',
  substitute: 'https',
  endpoint: { protocol: 'HTTPS', tls: { ca: CA } },
  healthCheck: { type: 'HTTP' },
} as const;
const GRPC = {
  kind: 'GRPCRoute',
  substitute: 'grpc',
  endpoint: { protocol: 'gRPC' },
  healthCheck: { type: 'GRPC', service: GRPC_SERVICE },
} as const;
const TCP = {
  kind: 'TCPRoute',
  substitute: 'tcp',
  endpoint: { protocol: 'TCP' },
  healthCheck: { type: 'TCP' },
} as const;

/** HTTP checks of endpoints whose traffic is not HTTP. */
const HTTP_OVER_TCP = { ...TCP, healthCheck: { type: 'HTTP', path: '/health' } } as const;
const HTTP_OVER_TLS = {
  kind: 'TCPRoute',
  substitute: 'tls',
  endpoint: { protocol: 'TLS', tls: { ca: CA } },
  healthCheck: { type: 'HTTP' },
} as const;

const NO_RESPONSE = `timeout after ${CHECK.timeout}`;

/** The faults of services, by the names of their endpoints. */
export const FAULTS: readonly Fault[] = [
  {
    name: 'wrong-code',
    ...HTTP,
    error: 'got 503, expected 200',
    start: failing(startHttpService, 'ok', 'failing'),
  },
  {
    name: 'redirect',
    ...HTTP,
    error: 'got 302, expected 200',
    start: failing(startHttpService, 'ok', 'redirecting'),
  },
  { name: 'refused', ...HTTP, error: 'connection refused', start: failing(startHttpService, 'ok', 'closed') },
  { name: 'hanging', ...HTTP, error: NO_RESPONSE, start: failing(startHttpService, 'ok', 'hanging') },
  { name: 'slow', ...HTTP, error: NO_RESPONSE, start: failing(startHttpService, 'ok', 'slow') },
  { name: 'dripping', ...HTTP, error: NO_RESPONSE, start: failing(startHttpService, 'ok', 'dripping') },
  {
    name: 'expired',
    ...HTTPS,
    error: 'certificate expired',
    start: failing(startHttpsService, 'valid', 'expired'),
  },
  {
    name: 'other-name',
    ...HTTPS,
    error: 'certificate is not valid for web-1.example.ts.net',
    start: failing(startHttpsService, 'valid', 'ofAnotherName'),
  },
  {
    name: 'unknown-authority',
    ...HTTPS,
    error: 'certificate is signed by an unknown authority',
    start: failing(startHttpsService, 'valid', 'ofAnUnknownAuthority'),
  },
  {
    name: 'not-serving',
    ...GRPC,
    error: 'health status NOT_SERVING',
    start: failing(startGrpcService, 'ok', 'notServing'),
  },
  {
    name: 'unknown-service',
    ...GRPC,
    error: `service ${GRPC_SERVICE} is unknown`,
    start: failing(startGrpcService, 'ok', 'unknownService'),
  },
  { name: 'closed', ...TCP, error: 'connection refused', start: failing(startTcpService, 'ok', 'closed') },
  {
    name: 'tcp-wrong-code',
    ...HTTP_OVER_TCP,
    error: 'got 503, expected 200',
    start: failing(startHttpService, 'ok', 'failing'),
  },
  {
    name: 'tls-expired',
    ...HTTP_OVER_TLS,
    error: 'certificate expired',
    start: failing(startHttpsService, 'valid', 'expired'),
  },
];
