import { GATEWAY_GROUP } from './gateway-api.ts';
import type { BackendRef, ParentRef, Route } from './gateway-api.ts';
import { GROUP } from '../generated/kinds.ts';
import type { Kinds, MeshEndpoint } from '../generated/types.ts';
import { keyOf } from '../key.ts';
import type { Key, Ref, ResourceKind } from '../key.ts';
import { ANCHOR } from '../names.ts';

/** The reference of an object. */
export function refTo<K extends ResourceKind>(object: {
  readonly kind: K;
  readonly metadata: { readonly namespace?: string; readonly name: string };
}): Ref<K> {
  const { kind, metadata } = object;
  return { kind, namespace: metadata.namespace ?? '', name: metadata.name };
}

/** Whether a route is an anchor of the operator, which never has traffic. */
export function isAnchor({ kind, metadata: { labels = {} } }: Pick<Route, 'kind' | 'metadata'>): boolean {
  return kind === 'HTTPRoute' && Object.hasOwn(labels, ANCHOR.label);
}

/** The MeshEndpoints to which a route sends or mirrors traffic. */
export function meshBackendsOf(route: Route): readonly Key[] {
  if (isAnchor(route)) return [];
  const backends = route.rules.flatMap(({ backendRefs, mirrors }) => [...backendRefs, ...mirrors]);
  return backends
    .filter(isMeshBackend)
    .map(({ namespace, name }) => keyOf({ kind: 'MeshEndpoints', namespace, name }));
}

/** Whether a backend is a MeshEndpoints. */
export function isMeshBackend({ group, kind }: Pick<BackendRef, 'group' | 'kind'>): boolean {
  return group === GROUP && kind === 'MeshEndpoints';
}

/** The Gateways that a route attaches to. */
export function gatewaysOf(route: Route): readonly Key[] {
  return isAnchor(route) ? [] : gatewaysIn(route);
}

/** The Gateways among the parentRefs of a route. */
export function gatewaysIn({ parentRefs }: Route): readonly Key[] {
  return parentRefs
    .filter(isGateway)
    .map(({ namespace, name }) => keyOf({ kind: 'Gateway', namespace, name }));
}

function isGateway({ group, kind }: ParentRef): boolean {
  return group === GATEWAY_GROUP && kind === 'Gateway';
}

/** The tailnet that relates MeshEndpoints and MeshTailnets. */
export function tailnetsOf(object: { readonly spec: { readonly tailnet: string } }): readonly string[] {
  return [object.spec.tailnet];
}

/** The tailnet of a MeshEndpoints with UDP endpoints in it. */
export function udpTailnetsOf({ spec }: Kinds['MeshEndpoints']): readonly string[] {
  const hasDatagrams = spec.endpoints?.some(isRelayed) === true;
  return hasDatagrams ? [spec.tailnet] : [];
}

/** Whether relays carry the traffic of an endpoint. */
export function isRelayed({ protocol, externalTarget }: MeshEndpoint): boolean {
  return protocol === 'UDP' && externalTarget === undefined;
}
