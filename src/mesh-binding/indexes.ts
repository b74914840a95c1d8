import type { Route } from '../api/gateway-api.ts';
import { keyOf, refOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref, RouteKind } from '../api/key.ts';
import { gatewaysOf, meshBackendsOf, refTo, tailnetsOf } from '../api/references.ts';
import type { ResourceOf } from '../api/resource.ts';
import { byNamespace } from '../resources/resources.ts';
import type { AnyIndex, Index, ReadResources } from '../resources/resources.ts';

function byBackend<K extends RouteKind>(kind: K): Index<K> {
  return { name: `binding: ${kind} by MeshEndpoints`, kind, valuesOf: route => meshBackendsOf(route) };
}

const endpointsByTailnet: Index<'MeshEndpoints'> = {
  name: 'binding: MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

/** The indexes that the store must have been made with. */
export const bindingIndexes: readonly AnyIndex[] = [
  endpointsByTailnet,
  ...ROUTE_KINDS.map(kind => byBackend(kind) as AnyIndex),
];

function gatewayRefsOf(route: Route): readonly Ref<'Gateway'>[] {
  return gatewaysOf(route).map(key => refOf(key) as Ref<'Gateway'>);
}

/** The Gateways of all routes that send traffic to a MeshEndpoints, which may not be there. */
export function gatewaysUsing(endpoints: Key, read: ReadResources): readonly Ref<'Gateway'>[] {
  return ROUTE_KINDS.flatMap((kind): readonly Route[] => read.find(byBackend(kind), endpoints)).flatMap(
    gatewayRefsOf,
  );
}

/** The Gateways that use any MeshEndpoints of a tailnet. */
export function gatewaysOfTailnet(domain: string, read: ReadResources): readonly Ref<'Gateway'>[] {
  return gatewaysUsingAny(read.find(endpointsByTailnet, domain), read);
}

/** The Gateways that use any MeshEndpoints of a namespace. */
export function gatewaysOfNamespace(namespace: string, read: ReadResources): readonly Ref<'Gateway'>[] {
  return gatewaysUsingAny(read.find(byNamespace('MeshEndpoints'), namespace), read);
}

function gatewaysUsingAny(
  objects: readonly ResourceOf<'MeshEndpoints'>[],
  read: ReadResources,
): readonly Ref<'Gateway'>[] {
  return objects.flatMap(object => gatewaysUsing(keyOf(refTo(object)), read));
}
