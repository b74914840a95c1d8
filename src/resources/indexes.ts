import { meshBackendsOf, tailnetsOf } from '../api/references.ts';
import { ROUTE_KINDS } from '../api/key.ts';
import type { Key, RouteKind } from '../api/key.ts';
import type { Route } from '../api/gateway-api.ts';
import type { AnyIndex, Index, ReadResources } from './resources.ts';

/*
 * Indexes that several controllers use. Each costs memory for every object, so that controllers share them.
 */

/** MeshEndpoints by their tailnet. */
export const endpointsByTailnet: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

const routesByEndpoints = ROUTE_KINDS.map(<K extends RouteKind>(kind: K): Index<K> => ({
  name: `${kind} by MeshEndpoints`,
  kind,
  valuesOf: route => meshBackendsOf(route),
}));

/** The indexes above. */
export const sharedIndexes: readonly AnyIndex[] = [endpointsByTailnet, ...(routesByEndpoints as AnyIndex[])];

/** The routes of all kinds that send or mirror traffic to a MeshEndpoints, which need not exist; unordered. */
export function routesTo(endpoints: Key, read: ReadResources): readonly Route[] {
  return routesByEndpoints.flatMap((index): readonly Route[] => read.find(index, endpoints));
}
