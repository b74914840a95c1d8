import { GATEWAY_GROUP } from './gateway-api.ts';
import type { BackendRef, ListenerSet, ParentRef, Route } from './gateway-api.ts';
import { GROUP } from '../generated/kinds.ts';
import type { Kinds, MeshEndpoint } from '../generated/types.ts';
import { endpointsOf } from './endpoints.ts';
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

/** Objects in the order of their keys, so that it does not depend on the order in which they were read. */
export function inOrderOfKeys<T extends Parameters<typeof refTo>[0]>(objects: readonly T[]): readonly T[] {
  const keyed = objects.map(object => ({ object, key: keyOf(refTo(object)) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ object }) => object);
}

/** Whether a route is an anchor of the operator, which never has traffic. */
export function isAnchor({ kind, metadata: { labels = {} } }: Pick<Route, 'kind' | 'metadata'>): boolean {
  return kind === 'HTTPRoute' && Object.hasOwn(labels, ANCHOR.label);
}

/** The MeshEndpoints to which a route sends or mirrors traffic. */
export function meshBackendsOf(route: Route): readonly Key[] {
  return isAnchor(route) ? [] : meshBackendsIn(route);
}

/** The MeshEndpoints that an anchor names; none of other routes. */
export function anchoredBy(route: Route): readonly Key[] {
  return isAnchor(route) ? meshBackendsIn(route) : [];
}

function meshBackendsIn(route: Route): readonly Key[] {
  const backends = route.rules.flatMap(({ backendRefs, mirrors }) => [...backendRefs, ...mirrors]);
  return backends
    .filter(isMeshBackend)
    .map(({ namespace, name }) => keyOf({ kind: 'MeshEndpoints', namespace, name }));
}

/** Whether a backend is a MeshEndpoints. */
export function isMeshBackend({ group, kind }: Pick<BackendRef, 'group' | 'kind'>): boolean {
  return group === GROUP && kind === 'MeshEndpoints';
}

/** Whether a rule of a route sends traffic to MeshEndpoints. */
export function isMeshRoute({ rules }: Pick<Route, 'rules'>): boolean {
  return rules.some(({ backendRefs }) => backendRefs.some(isMeshBackend));
}

/** The Gateways and ListenerSets that a route names; whether they accept it is in src/traffic/attachments. */
export function parentsOf(route: Route): readonly Ref<ParentKind>[] {
  return isAnchor(route) ? [] : parentsIn(route.parentRefs);
}

type ParentKind = 'Gateway' | 'ListenerSet';

function parentsIn(parentRefs: readonly ParentRef[]): readonly Ref<ParentKind>[] {
  return parentRefs.flatMap(({ group, kind, namespace, name }) =>
    group === GATEWAY_GROUP && isParentKind(kind) ? [{ kind, namespace, name }] : [],
  );
}

function isParentKind(kind: string): kind is ParentKind {
  return kind === 'Gateway' || kind === 'ListenerSet';
}

/** The Gateways among parentRefs. */
export function gatewaysIn(parentRefs: readonly ParentRef[]): readonly Key[] {
  return parentsIn(parentRefs)
    .filter(({ kind }) => kind === 'Gateway')
    .map(keyOf);
}

/** The Gateway of a ListenerSet; none if its parent is another kind. */
export function gatewayOfListenerSet({ parentRef }: ListenerSet): readonly Key[] {
  return gatewaysIn([parentRef]);
}

/** The tailnet that relates MeshEndpoints and MeshTailnets. */
export function tailnetsOf(object: { readonly spec: { readonly tailnet: string } }): readonly string[] {
  return [object.spec.tailnet];
}

/** The tailnet of a MeshEndpoints with UDP endpoints in it. */
export function udpTailnetsOf(object: Kinds['MeshEndpoints']): readonly string[] {
  return endpointsOf(object).some(isRelayed) ? [object.spec.tailnet] : [];
}

/** Whether relays carry the traffic of an endpoint. */
export function isRelayed({ protocol, externalTarget }: MeshEndpoint): boolean {
  return protocol === 'UDP' && externalTarget === undefined;
}
