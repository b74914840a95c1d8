import type { MeshEndpoint, Protocol } from '../api/generated/types.ts';
import type { RouteKind } from '../api/key.ts';

/** The protocol between Envoy and the endpoints of a cluster, inside of TLS if there is any. */
export type UpstreamProtocol = 'HTTP/1.1' | 'HTTP/2' | 'TCP' | 'UDP';

/** The protocol to an endpoint, and whether Envoy originates TLS: `if-configured` means where the endpoint has `tls`. */
type Upstream = {
  readonly protocol: UpstreamProtocol;
  readonly tls: 'always' | 'if-configured' | 'never';
};

const HTTP1: Upstream = { protocol: 'HTTP/1.1', tls: 'never' };
const HTTP1_OVER_TLS: Upstream = { protocol: 'HTTP/1.1', tls: 'always' };
const HTTP2: Upstream = { protocol: 'HTTP/2', tls: 'if-configured' };
const HTTP2_OVER_TLS: Upstream = { protocol: 'HTTP/2', tls: 'always' };
const TCP: Upstream = { protocol: 'TCP', tls: 'never' };
const TCP_OVER_TLS: Upstream = { protocol: 'TCP', tls: 'if-configured' };
const UDP: Upstream = { protocol: 'UDP', tls: 'never' };

/** The kinds of routes that support each protocol of an endpoint; with any other kind the endpoint is not used. */
const TABLE: Readonly<Record<Protocol, Readonly<Partial<Record<RouteKind, Upstream>>>>> = {
  HTTP: { HTTPRoute: HTTP1, TCPRoute: TCP },
  HTTPS: { HTTPRoute: HTTP1_OVER_TLS, GRPCRoute: HTTP2_OVER_TLS, TLSRoute: TCP, TCPRoute: TCP },
  gRPC: { HTTPRoute: HTTP2, GRPCRoute: HTTP2, TCPRoute: TCP },
  TCP: { TLSRoute: TCP, TCPRoute: TCP },
  TLS: { TLSRoute: TCP, TCPRoute: TCP_OVER_TLS },
  UDP: { UDPRoute: UDP },
};

/** The upstream of an endpoint for a kind of route; undefined where the kind does not support the endpoint's protocol. */
export function upstreamFor(protocol: Protocol, kind: RouteKind): Upstream | undefined {
  return TABLE[protocol][kind];
}

/** Whether Envoy originates TLS to an endpoint with an upstream. */
export function originatesTls(upstream: Upstream, { tls }: MeshEndpoint): boolean {
  switch (upstream.tls) {
    case 'always':
      return true;
    case 'if-configured':
      return tls !== undefined;
    case 'never':
      return false;
  }
}

/** Whether an endpoint accepts nothing but TLS, which Envoy originates or passes through. */
export function servesTls({ protocol }: MeshEndpoint): boolean {
  return protocol === 'HTTPS' || protocol === 'TLS';
}

/** The protocols of endpoints that a kind of route supports. */
export function protocolsFor(kind: RouteKind): readonly string[] {
  return Object.entries(TABLE).flatMap(([protocol, kinds]) => (kinds[kind] ? [protocol] : []));
}

/** The kinds of routes that support a protocol. */
export function routeKindsFor(protocol: Protocol): readonly string[] {
  return Object.keys(TABLE[protocol]);
}

/** The protocol of a cluster without endpoints, and of Services beside MeshEndpoints. */
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
