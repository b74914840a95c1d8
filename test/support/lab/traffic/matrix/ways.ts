import type { ServiceName } from '../../../../../lab/tailnet/backends.ts';
import type { RouteKind } from '../../../../../src/api/key.ts';

/** What a row of the matrix is about: what the endpoint speaks, and, where there are several, what Envoy does. */
export type Protocol =
  'HTTP' | 'HTTPS' | 'gRPC' | 'gRPC over TLS' | 'TCP' | 'TLS passthrough' | 'TLS originated' | 'UDP';

/** How a protocol is led to its service. */
export type Way = {
  readonly kind: RouteKind;
  /** The listener of the Gateway; a kind below HTTP has one for itself. */
  readonly listener: 'http' | 'tls' | 'tcp' | 'originated' | 'udp';
  readonly service: ServiceName;
};

/** The way of each protocol. */
export const WAYS: Readonly<Record<Protocol, Way>> = {
  HTTP: { kind: 'HTTPRoute', listener: 'http', service: 'http' },
  HTTPS: { kind: 'HTTPRoute', listener: 'http', service: 'https' },
  gRPC: { kind: 'GRPCRoute', listener: 'http', service: 'grpc' },
  'gRPC over TLS': { kind: 'GRPCRoute', listener: 'http', service: 'grpcs' },
  TCP: { kind: 'TCPRoute', listener: 'tcp', service: 'tcp' },
  'TLS passthrough': { kind: 'TLSRoute', listener: 'tls', service: 'tls' },
  'TLS originated': { kind: 'TCPRoute', listener: 'originated', service: 'tls' },
  UDP: { kind: 'UDPRoute', listener: 'udp', service: 'udp' },
};
