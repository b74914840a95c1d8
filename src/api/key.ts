import type { KindName } from './generated/kinds.ts';

/** The kinds of routes that Gateway API has. */
export const ROUTE_KINDS = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute', 'UDPRoute'] as const;

/** One of the kinds of routes. */
export type RouteKind = (typeof ROUTE_KINDS)[number];

/** The kinds that a route may lead to beside ours, and what says where these are. */
export const BACKEND_KINDS = ['Service', 'EndpointSlice', 'Backend'] as const;

/** Every kind that is read: our own, and those of others that say what ours are used for. */
export type ResourceKind =
  | KindName
  | RouteKind
  | (typeof BACKEND_KINDS)[number]
  | 'Gateway'
  | 'GatewayClass'
  | 'Namespace'
  | 'ReferenceGrant';

/** Which object: its kind, its namespace (empty where the kind has none) and its name. */
export type Ref<K extends ResourceKind = ResourceKind> = {
  readonly kind: K;
  readonly namespace: string;
  readonly name: string;
};

/** A reference as one text, by which objects are looked up, compared and queued. */
export type Key = `${ResourceKind}/${string}/${string}`;

/** The key of an object. */
export function keyOf({ kind, namespace, name }: Ref): Key {
  return `${kind}/${namespace}/${name}`;
}

/** The object that a key means. */
export function refOf(key: Key): Ref {
  const [kind, namespace = '', name = ''] = key.split('/');
  return { kind: kind as ResourceKind, namespace, name };
}
