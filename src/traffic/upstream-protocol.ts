import type { MeshEndpoint, Protocol } from '../api/generated/types.ts';
import type { RouteKind } from '../api/key.ts';
import type { Speech } from './rule.ts';

/** What Envoy says to an endpoint, and whether it says it over TLS of its own. */
export type Spoken = { readonly speech: Speech; readonly overTls: 'always' | 'where-tls-is-given' | 'never' };

const HTTP1: Spoken = { speech: 'HTTP/1.1', overTls: 'never' };
const HTTP1_OVER_TLS: Spoken = { speech: 'HTTP/1.1', overTls: 'always' };
const HTTP2: Spoken = { speech: 'HTTP/2', overTls: 'where-tls-is-given' };
const HTTP2_OVER_TLS: Spoken = { speech: 'HTTP/2', overTls: 'always' };
const BYTES: Spoken = { speech: 'bytes', overTls: 'never' };
const BYTES_IN_TLS: Spoken = { speech: 'bytes', overTls: 'where-tls-is-given' };
const DATAGRAMS: Spoken = { speech: 'datagrams', overTls: 'never' };

/** The routes that go with each protocol; with all others it cannot be used. */
const TABLE: Readonly<Record<Protocol, Readonly<Partial<Record<RouteKind, Spoken>>>>> = {
  HTTP: { HTTPRoute: HTTP1, TCPRoute: BYTES },
  HTTPS: { HTTPRoute: HTTP1_OVER_TLS, GRPCRoute: HTTP2_OVER_TLS, TLSRoute: BYTES, TCPRoute: BYTES },
  gRPC: { HTTPRoute: HTTP2, GRPCRoute: HTTP2, TCPRoute: BYTES },
  TCP: { TLSRoute: BYTES, TCPRoute: BYTES },
  TLS: { TLSRoute: BYTES, TCPRoute: BYTES_IN_TLS },
  UDP: { UDPRoute: DATAGRAMS },
};

/** What Envoy says to an endpoint of a protocol on behalf of a kind of route, or nothing where these do not go together. */
export function spokenTo(protocol: Protocol, kind: RouteKind): Spoken | undefined {
  return TABLE[protocol][kind];
}

/** Whether Envoy speaks TLS of its own with an endpoint. */
export function isOverTls({ overTls }: Spoken, { tls }: MeshEndpoint): boolean {
  switch (overTls) {
    case 'always':
      return true;
    case 'where-tls-is-given':
      return tls !== undefined;
    case 'never':
      return false;
  }
}

/** The protocols that go with a kind of route. */
export function protocolsOf(kind: RouteKind): readonly string[] {
  return Object.entries(TABLE).flatMap(([protocol, kinds]) => (kinds[kind] ? [protocol] : []));
}

/** The kinds of routes that go with a protocol. */
export function routeKindsOf(protocol: Protocol): readonly string[] {
  return Object.keys(TABLE[protocol]);
}

/** What a cluster of a kind of route is made for while it has no endpoint. */
export function usualSpeech(kind: RouteKind): Speech {
  switch (kind) {
    case 'HTTPRoute':
      return 'HTTP/1.1';
    case 'GRPCRoute':
      return 'HTTP/2';
    case 'TLSRoute':
    case 'TCPRoute':
      return 'bytes';
    case 'UDPRoute':
      return 'datagrams';
  }
}
