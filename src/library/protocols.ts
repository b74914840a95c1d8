import type { Protocol } from '../api/generated/types.ts';
import type { RouteKind } from '../api/key.ts';

/** The kinds of routes that support each protocol of an endpoint; with any other kind it gets no traffic. */
export const ROUTES_OF = {
  HTTP: ['HTTPRoute', 'TCPRoute'],
  HTTPS: ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'],
  gRPC: ['HTTPRoute', 'GRPCRoute', 'TCPRoute'],
  TCP: ['TLSRoute', 'TCPRoute'],
  TLS: ['TLSRoute', 'TCPRoute'],
  UDP: ['UDPRoute'],
} as const satisfies Readonly<Record<Protocol, readonly RouteKind[]>>;

/** The kinds of routes that support a protocol; of several protocols, any of them. */
export type RouteOf<P extends Protocol> = (typeof ROUTES_OF)[P][number];

/** The error message where a kind of route does not support the protocol of a port. */
export type Mismatch<
  Kind extends RouteKind,
  P extends Protocol,
  Port extends number,
> = `${Kind} does not support protocol ${P} of port ${Port}: use ${Joined<(typeof ROUTES_OF)[P]>}`;

type Joined<Words extends readonly string[]> = Words extends readonly [
  infer First extends string,
  ...infer Rest extends readonly string[],
]
  ? Rest extends readonly []
    ? First
    : `${First} or ${Joined<Rest>}`
  : never;

/** Whether a kind of route supports a protocol. */
export function supports(kind: RouteKind, protocol: Protocol): boolean {
  const kinds: readonly RouteKind[] = ROUTES_OF[protocol];
  return kinds.includes(kind);
}

/** The error message at run time: the same as the compiler's. */
export function mismatch(kind: RouteKind, protocol: Protocol, port: number): string {
  return `${kind} does not support protocol ${protocol} of port ${port}: use ${ROUTES_OF[protocol].join(' or ')}`;
}
