import { isEqual } from '../../api/json.ts';
import { keyOf, refOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Key, Ref, RouteKind } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { gatewayOfListenerSet, parentsOf, refTo } from '../../api/objects/references.ts';
import { acceptsListenerSet, listenersFor } from '../../traffic/attachments.ts';
import type { AttachmentResources } from '../../traffic/attachments.ts';
import { Derived } from '../derived.ts';
import type { AnyIndex, Index, ReadObjects } from '../resources.ts';
import type { Tracking } from '../tracking.ts';

/** Parents are Gateways and ListenerSets. */
function routesByParent<K extends RouteKind>(kind: K): Index<K> {
  return {
    name: `${kind} by parent`,
    group: 'routes by parent',
    kind,
    valuesOf: route => parentsOf(route).map(keyOf),
  };
}

const listenerSetsByGateway: Index<'ListenerSet'> = {
  name: 'ListenerSet by Gateway',
  kind: 'ListenerSet',
  valuesOf: gatewayOfListenerSet,
};

/** The indexes by which routes are found that attach to a Gateway. */
export const attachmentIndexes: readonly AnyIndex[] = [
  listenerSetsByGateway,
  ...ROUTE_KINDS.map(kind => routesByParent(kind) as AnyIndex),
];

/** Reads what decides which routes attach to which Gateways. */
export function attachmentResourcesFrom(read: ReadObjects): AttachmentResources {
  return {
    gateway: ref => read.get(ref),
    listenerSet: ref => read.get(ref),
    namespace: name => read.get({ kind: 'Namespace', namespace: '', name }),
  };
}

/**
 * By the key of a Gateway: the routes of all kinds that attach to it, also by its ListenerSets, unordered; none of a Gateway that
 * does not exist. A route or ListenerSet that the Gateway refuses changes no value, whoever makes it name the Gateway.
 */
export function attachedRoutesFrom(tracking: Tracking): Derived<readonly Route[]> {
  const listenerSets = new Derived<readonly Ref<'ListenerSet'>[]>(
    tracking,
    (key, { exceptStatus: read }) => {
      const gateway = read.get(refOf(key as Key) as Ref<'Gateway'>);
      if (!gateway || gateway.allowedListeners.from === 'None') return [];
      const resources = attachmentResourcesFrom(read);
      return read
        .find(listenerSetsByGateway, key)
        .filter(each => acceptsListenerSet(gateway, each, resources))
        .map(refTo);
    },
    isEqual,
  );
  return new Derived<readonly Route[]>(
    tracking,
    (key, run) => {
      const read = run.exceptStatus;
      const resources = attachmentResourcesFrom(read);
      const parents = [refOf(key as Key) as Ref<'Gateway'>, ...run.value(listenerSets, key)];
      const routes = parents.flatMap(ref => {
        const parent = read.get<'Gateway' | 'ListenerSet'>(ref);
        return parent
          ? routesNaming(read, keyOf(ref)).filter(each => listenersFor(each, parent, resources).length > 0)
          : [];
      });
      // A route may attach to several of the parents.
      return [...new Map(routes.map(route => [keyOf(refTo(route)), route])).values()];
    },
    isEqual,
  );
}

function routesNaming(read: ReadObjects, parent: Key): readonly Route[] {
  return ROUTE_KINDS.flatMap((kind): readonly Route[] => read.find(routesByParent(kind), parent));
}
