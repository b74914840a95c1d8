import { crc32 } from 'node:zlib';
import type { KindName } from './generated/kinds.ts';

/** The kinds of routes that Gateway API has. */
export const ROUTE_KINDS = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;

/** One of the kinds of routes. */
export type RouteKind = (typeof ROUTE_KINDS)[number];

/** Whether routes of a kind match requests of HTTP; the others pass connections or datagrams on. */
export function isOverHttp(kind: RouteKind): boolean {
  return kind === 'HTTPRoute' || kind === 'GRPCRoute';
}

/** Kinds of other backends of routes, and EndpointSlice, which has the addresses of Services. */
export const BACKEND_KINDS = ['Service', 'EndpointSlice', 'Backend'] as const;

/** Every kind that is read: mesh-gateway's own, and those of Kubernetes, Gateway API and Envoy Gateway. */
export type ResourceKind =
  | KindName
  | RouteKind
  | (typeof BACKEND_KINDS)[number]
  | 'BackendTLSPolicy'
  | 'BackendTrafficPolicy'
  | 'ConfigMap'
  | 'EnvoyProxy'
  | 'Gateway'
  | 'GatewayClass'
  | 'ListenerSet'
  | 'Namespace'
  | 'Pod'
  | 'ReferenceGrant';

/** A reference to an object: its kind, its namespace (empty if cluster-scoped) and its name. */
export type Ref<K extends ResourceKind = ResourceKind> = {
  readonly kind: K;
  readonly namespace: string;
  readonly name: string;
};

/** A reference as one text, for maps, comparisons and queues. */
export type Key = `${ResourceKind}/${string}/${string}`;

/** The key of an object. */
export function keyOf({ kind, namespace, name }: Ref): Key {
  return `${kind}/${namespace}/${name}`;
}

/** The reference of a key. */
export function refOf(key: Key): Ref {
  const first = key.indexOf('/');
  const second = key.indexOf('/', first + 1);
  return {
    kind: key.slice(0, first) as ResourceKind,
    namespace: key.slice(first + 1, second),
    name: key.slice(second + 1),
  };
}

/** For 10,000 keys, a group has as many keys as there are groups, about. */
const GROUPS = 64;

/** The number of the group of a key, which is the same in all processes. */
export function groupOf(key: Key): number {
  return crc32(key) % GROUPS;
}
