import { anchoredBy, udpTailnetsOf, meshBackendsOf, tailnetsOf } from '../api/objects/references.ts';
import { discovers, vipServicesIn } from '../api/objects/endpoints.ts';
import { caRefsOf } from '../api/trust.ts';
import { ROUTE_KINDS } from '../api/key.ts';
import type { Kinds } from '../api/generated/types.ts';
import type { Key, RouteKind } from '../api/key.ts';
import type { Route } from '../api/objects/gateway-api.ts';
import type { AnyIndex, Index, ReadObjects } from './resources.ts';

/*
 * Indexes that several controllers use. Each costs memory for every object, so controllers share them.
 */

/** MeshEndpoints by their tailnet. */
export const endpointsByTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

/** Those of them that have UDP endpoints, which relays carry. */
export const udpEndpointsByTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints with UDP by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: udpTailnetsOf,
};

/** Those of them that find devices by their tags. */
export const selectingByTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints with tagSelectors by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: object => (discovers(object) ? tailnetsOf(object) : []),
};

/** Those of them that list VIP services. */
export const vipServicesByTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints with vipServices by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: object => (vipServicesIn(object).length > 0 ? tailnetsOf(object) : []),
};

/** The same by their namespace. */
export const vipServicesByNamespace: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints with vipServices by namespace',
  kind: 'MeshEndpoints',
  valuesOf: object => (vipServicesIn(object).length > 0 ? [object.metadata.namespace ?? ''] : []),
};

const ANY = 'any';

/** The MeshEndpoints with a tls.caRef, under one value. */
const endpointsWithCaRef: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints with tls.caRef',
  kind: 'MeshEndpoints',
  valuesOf: object => (caRefsOf(object).length > 0 ? [ANY] : []),
};

/** The MeshEndpoints with a tls.caRef. */
export function findWithCaRef(read: ReadObjects): readonly Kinds['MeshEndpoints'][] {
  return read.find(endpointsWithCaRef, ANY);
}

const routesByEndpoints = ROUTE_KINDS.map(<K extends RouteKind>(kind: K): Index<K> => ({
  name: `${kind} by MeshEndpoints`,
  group: 'routes by MeshEndpoints',
  kind,
  valuesOf: route => meshBackendsOf(route),
}));

/** Anchors by the MeshEndpoints that they name. */
export const anchorsByEndpoints: Index<'HTTPRoute'> = {
  name: 'anchors by MeshEndpoints',
  kind: 'HTTPRoute',
  valuesOf: route => anchoredBy(route),
};

/** The indexes above. */
export const sharedIndexes: readonly AnyIndex[] = [
  endpointsByTailnet,
  udpEndpointsByTailnet,
  selectingByTailnet,
  vipServicesByTailnet,
  vipServicesByNamespace,
  endpointsWithCaRef,
  ...(routesByEndpoints as AnyIndex[]),
  anchorsByEndpoints,
];

/** The routes of all kinds that send or mirror traffic to a MeshEndpoints, which need not exist; unordered. */
export function routesTo(endpoints: Key, read: ReadObjects): readonly Route[] {
  return routesByEndpoints.flatMap((index): readonly Route[] => read.find(index, endpoints));
}
