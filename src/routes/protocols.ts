import type { Protocol } from '../api/generated/types.ts';
import type { RouteKind } from '../api/key.ts';

/** The kinds of routes that go with each protocol; with all others an endpoint gets no traffic. */
export const ROUTES_OF = {
  HTTP: ['HTTPRoute', 'TCPRoute'],
  HTTPS: ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'],
  gRPC: ['HTTPRoute', 'GRPCRoute', 'TCPRoute'],
  TCP: ['TLSRoute', 'TCPRoute'],
  TLS: ['TLSRoute', 'TCPRoute'],
  UDP: ['UDPRoute'],
} as const satisfies Readonly<Record<Protocol, readonly RouteKind[]>>;

/** The kinds of routes that go with a protocol; of several protocols, those that go with any. */
export type RouteOf<P extends Protocol> = (typeof ROUTES_OF)[P][number];

/** What is said where a kind of route does not go with the protocol of a port. */
export type Misfit<
  Kind extends RouteKind,
  P extends Protocol,
  Port extends number,
> = `${Kind} does not go with protocol ${P} of port ${Port}: use ${Joined<(typeof ROUTES_OF)[P]>}`;

type Joined<Words extends readonly string[]> = Words extends readonly [
  infer First extends string,
  ...infer Rest extends readonly string[],
]
  ? Rest extends readonly []
    ? First
    : `${First} or ${Joined<Rest>}`
  : never;

/** Whether a kind of route goes with a protocol. */
export function isFit(kind: RouteKind, protocol: Protocol): boolean {
  const kinds: readonly RouteKind[] = ROUTES_OF[protocol];
  return kinds.includes(kind);
}

/** The same as the compiler says it. */
export function misfit(kind: RouteKind, protocol: Protocol, port: number): string {
  return `${kind} does not go with protocol ${protocol} of port ${port}: use ${ROUTES_OF[protocol].join(' or ')}`;
}
