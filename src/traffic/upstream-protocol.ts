import type { MeshEndpoint, Protocol } from '../api/generated/types.ts';
import type { RouteKind } from '../api/key.ts';

/** What Envoy says to an endpoint, and whether it says it over TLS of its own. */
export type Upstream = {
  readonly protocol: UpstreamProtocol;
  readonly tls: 'always' | 'if-configured' | 'never';
};

const HTTP1: Upstream = { protocol: 'HTTP/1.1', tls: 'never' };
const HTTP1_OVER_TLS: Upstream = { protocol: 'HTTP/1.1', tls: 'always' };
const HTTP2: Upstream = { protocol: 'HTTP/2', tls: 'if-configured' };
const HTTP2_OVER_TLS: Upstream = { protocol: 'HTTP/2', tls: 'always' };
const BYTES: Upstream = { protocol: 'TCP', tls: 'never' };
const BYTES_IN_TLS: Upstream = { protocol: 'TCP', tls: 'if-configured' };
const DATAGRAMS: Upstream = { protocol: 'UDP', tls: 'never' };

/** The routes that go with each protocol; with all others it cannot be used. */
const TABLE: Readonly<Record<Protocol, Readonly<Partial<Record<RouteKind, Upstream>>>>> = {
  HTTP: { HTTPRoute: HTTP1, TCPRoute: BYTES },
  HTTPS: { HTTPRoute: HTTP1_OVER_TLS, GRPCRoute: HTTP2_OVER_TLS, TLSRoute: BYTES, TCPRoute: BYTES },
  gRPC: { HTTPRoute: HTTP2, GRPCRoute: HTTP2, TCPRoute: BYTES },
  TCP: { TLSRoute: BYTES, TCPRoute: BYTES },
  TLS: { TLSRoute: BYTES, TCPRoute: BYTES_IN_TLS },
  UDP: { UDPRoute: DATAGRAMS },
};

/** What Envoy says to an endpoint of a protocol on behalf of a kind of route, or nothing where these do not go together. */
export function upstreamFor(protocol: Protocol, kind: RouteKind): Upstream | undefined {
  return TABLE[protocol][kind];
}

/** Whether Envoy speaks TLS of its own with an endpoint. */
export function originatesTls({ tls: overTls }: Upstream, { tls }: MeshEndpoint): boolean {
  switch (overTls) {
    case 'always':
      return true;
    case 'if-configured':
      return tls !== undefined;
    case 'never':
      return false;
  }
}

/** The protocols that go with a kind of route. */
export function protocolsFor(kind: RouteKind): readonly string[] {
  return Object.entries(TABLE).flatMap(([protocol, kinds]) => (kinds[kind] ? [protocol] : []));
}

/** The kinds of routes that go with a protocol. */
export function routeKindsFor(protocol: Protocol): readonly string[] {
  return Object.keys(TABLE[protocol]);
}

/** What a cluster of a kind of route is made for while it has no endpoint. */
export function defaultProtocol(kind: RouteKind): UpstreamProtocol {
  switch (kind) {
    case 'HTTPRoute':
      return 'HTTP/1.1';
    case 'GRPCRoute':
      return 'HTTP/2';
    case 'TLSRoute':
    case 'TCPRoute':
      return 'TCP';
    case 'UDPRoute':
      return 'UDP';
  }
}

/** What Envoy says to the endpoints of a cluster, below which there may be TLS. */
export type UpstreamProtocol = 'HTTP/1.1' | 'HTTP/2' | 'TCP' | 'UDP';
