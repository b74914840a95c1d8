import { GATEWAY_GROUP } from '../api/objects/gateway-api.ts';
import type { Gateway, Listener, ListenerSet, ParentRef, Route } from '../api/objects/gateway-api.ts';
import { gatewayOfListenerSet, parentsOf, refTo } from '../api/objects/references.ts';
import type { SelectedNamespaces } from '../api/objects/selected-namespaces.ts';
import { keyOf, refOf } from '../api/key.ts';
import type { Key, Ref, RouteKind } from '../api/key.ts';
import { isAllowed } from './permissions.ts';
import type { TrafficResources } from './traffic-resources.ts';

/** What decides which routes attach to which Gateways. */
export type AttachmentResources = Pick<TrafficResources, 'gateway' | 'listenerSet' | 'namespace'>;

/** A Gateway that a route attaches to, and the listeners of it, or of a ListenerSet of it, that accept the route. */
export type Attachment = {
  readonly gateway: Ref<'Gateway'>;
  readonly parent: Gateway | ListenerSet;
  readonly listeners: readonly Listener[];
};

/**
 * Where a route attaches: to parents that exist and accept it, as Envoy Gateway decides it by allowedListeners and allowedRoutes.
 * Host names are not compared, because whoever may attach can choose them; nor whether a listener is valid.
 */
export function attachmentsOf(route: Route, resources: AttachmentResources): readonly Attachment[] {
  const parents = new Map(parentsOf(route).map(ref => [keyOf(ref), ref]));
  return [...parents.values()].flatMap(ref => {
    const parent =
      ref.kind === 'Gateway'
        ? resources.gateway({ ...ref, kind: 'Gateway' })
        : resources.listenerSet({ ...ref, kind: 'ListenerSet' });
    const listeners = parent ? listenersFor(route, parent, resources) : [];
    if (!parent || listeners.length === 0) return [];
    return gatewaysOfParent(parent, resources).map(gateway => ({ gateway, parent, listeners }));
  });
}

/** The Gateways that a route attaches to, also by ListenerSets, each once. */
export function gatewaysOf(route: Route, resources: AttachmentResources): readonly Key[] {
  return [...new Set(attachmentsOf(route, resources).map(({ gateway }) => keyOf(gateway)))];
}

function gatewaysOfParent(
  parent: Gateway | ListenerSet,
  resources: AttachmentResources,
): readonly Ref<'Gateway'>[] {
  if (parent.kind === 'Gateway') return [refTo(parent)];
  return gatewayOfListenerSet(parent).flatMap(key => {
    const ref = refOf(key) as Ref<'Gateway'>;
    const gateway = resources.gateway(ref);
    return gateway && acceptsListenerSet(gateway, parent, resources) ? [ref] : [];
  });
}

/** Whether a Gateway accepts a ListenerSet that names it. */
export function acceptsListenerSet(
  { allowedListeners, metadata }: Gateway,
  listenerSet: ListenerSet,
  resources: AttachmentResources,
): boolean {
  return selectsNamespace(resources, allowedListeners, metadata, listenerSet.metadata.namespace ?? '');
}

/** The listeners of a parent that accept a route, by those of its parentRefs that name the parent. */
export function listenersFor(
  route: Route,
  parent: Gateway | ListenerSet,
  resources: AttachmentResources,
): readonly Listener[] {
  const { metadata } = parent;
  const refs = parentRefsTo(route, parent);
  return parent.listeners.filter(
    listener =>
      refs.some(
        ref =>
          (ref.sectionName ?? listener.name) === listener.name &&
          (ref.port ?? listener.port) === listener.port,
      ) &&
      acceptsKind(listener, route.kind) &&
      selectsNamespace(
        resources,
        listener.allowedRoutes.namespaces,
        metadata,
        route.metadata.namespace ?? '',
      ),
  );
}

/** The parentRefs of a route that name a parent, or a listener of it. */
export function parentRefsTo(
  route: Route,
  { kind, metadata: { namespace = '', name } }: Gateway | ListenerSet,
): readonly ParentRef[] {
  return route.parentRefs.filter(
    ref =>
      ref.group === GATEWAY_GROUP && ref.kind === kind && ref.namespace === namespace && ref.name === name,
  );
}

/** The kinds of routes that can attach to a listener, by its protocol. */
const ROUTES_OF_PROTOCOL: Readonly<Partial<Record<string, readonly RouteKind[]>>> = {
  HTTP: ['HTTPRoute', 'GRPCRoute'],
  HTTPS: ['HTTPRoute', 'GRPCRoute'],
  TLS: ['TLSRoute', 'TCPRoute'],
  TCP: ['TCPRoute'],
  UDP: ['UDPRoute'],
};

/** The protocols of the listeners that routes of a kind can attach to. */
export function protocolsFor(kind: RouteKind): readonly string[] {
  return Object.keys(ROUTES_OF_PROTOCOL).filter(protocol => ROUTES_OF_PROTOCOL[protocol]?.includes(kind));
}

/** Whether routes of a kind can attach to a listener. */
export function acceptsKind({ protocol, isPassthrough, allowedRoutes }: Listener, kind: RouteKind): boolean {
  const supported = Object.hasOwn(ROUTES_OF_PROTOCOL, protocol) ? ROUTES_OF_PROTOCOL[protocol] : undefined;
  if (supported?.includes(kind) !== true || (isPassthrough && kind === 'TCPRoute')) return false;
  return allowedRoutes.kinds?.includes(kind) ?? true;
}

/** Whether an object accepts others of a namespace. */
export function selectsNamespace(
  resources: Pick<TrafficResources, 'namespace'>,
  { from, selector }: SelectedNamespaces,
  { namespace: own = '' }: { readonly namespace?: string },
  namespace: string,
): boolean {
  switch (from) {
    case 'None':
      return false;
    case 'Same':
      return namespace === own;
    case 'All':
    case 'Selector':
      return isAllowed(resources, { from, ...(selector && { selector }) }, namespace);
  }
}
