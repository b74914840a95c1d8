import type { ServiceName } from '../../../../../lab/tailnet/backends.ts';
import type { RouteKind } from '../../../../../src/api/key.ts';

/** The protocol of a row: that of the endpoint, and, where there are several ways, what Envoy does. */
export type Protocol =
  'HTTP' | 'HTTPS' | 'gRPC' | 'gRPC over TLS' | 'TCP' | 'TLS passthrough' | 'TLS originated' | 'UDP';

/** The endpoint and the route of a protocol. */
export type ProtocolRoute = {
  readonly kind: RouteKind;
  /** The listener of the Gateway; a kind below HTTP has one for itself. */
  readonly listener: 'http' | 'tls' | 'tcp' | 'originated' | 'udp';
  readonly service: ServiceName;
};

/** The endpoint and the route of each protocol. */
export const PROTOCOL_ROUTES: Readonly<Record<Protocol, ProtocolRoute>> = {
  HTTP: { kind: 'HTTPRoute', listener: 'http', service: 'http' },
  HTTPS: { kind: 'HTTPRoute', listener: 'http', service: 'https' },
  gRPC: { kind: 'GRPCRoute', listener: 'http', service: 'grpc' },
  'gRPC over TLS': { kind: 'GRPCRoute', listener: 'http', service: 'grpcs' },
  TCP: { kind: 'TCPRoute', listener: 'tcp', service: 'tcp' },
  'TLS passthrough': { kind: 'TLSRoute', listener: 'tls', service: 'tls' },
  'TLS originated': { kind: 'TCPRoute', listener: 'originated', service: 'tls' },
  UDP: { kind: 'UDPRoute', listener: 'udp', service: 'udp' },
};
