import { isEqual } from '../../api/json.ts';
import { keyOf, refOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Key, Ref, ResourceKind, RouteKind } from '../../api/key.ts';
import { gatewayOfListenerSet, parentsOf, refTo } from '../../api/objects/references.ts';
import { acceptsListenerSet, listenersFor } from '../../traffic/attachments.ts';
import type { AttachmentResources } from '../../traffic/attachments.ts';
import { Derived } from '../derived.ts';
import { groupsFrom } from '../groups.ts';
import type { AnyIndex, Index, ReadObjects } from '../resources.ts';
import type { TrackedRead, Tracking } from '../tracking.ts';

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

/** The kinds that `attachmentResourcesFrom` and the routes themselves are of. */
export const attachmentKinds: readonly ResourceKind[] = [
  ...ROUTE_KINDS,
  'Gateway',
  'ListenerSet',
  'Namespace',
];

/** Reads what decides which routes attach to which Gateways. */
export function attachmentResourcesFrom(read: ReadObjects): AttachmentResources {
  return {
    gateway: ref => read.get(ref),
    listenerSet: ref => read.get(ref),
    namespace: name => read.get({ kind: 'Namespace', namespace: '', name }),
  };
}

/** The routes that attach to Gateways, and what is combined from them. */
export type AttachedRoutes = {
  /** By the key of a Gateway, in order: the keys of the routes of all kinds that attach to it, also by its ListenerSets. */
  readonly keys: Derived<readonly Key[]>;
  /**
   * By the key of a Gateway: a value that is combined from those of groups of its routes, so that a change of one route costs the
   * same however many others there are.
   */
  readonly combined: <P, V>(combination: Combination<P, V>) => Derived<V>;
  /**
   * Derives the parts of all values that are combined for a Gateway, one in each step, so that a read after it is short: from
   * nothing, 10,000 routes take half a second.
   */
  readonly steps: (gateway: Key) => Generator<undefined, undefined>;
};

/** How a value is combined; no group is empty. */
type Combination<P, V> = {
  /** The kinds of objects that both functions read. */
  readonly reads: readonly ResourceKind[];
  readonly ofGroup: (routes: readonly Key[], read: TrackedRead) => P;
  readonly ofGateway: (parts: readonly P[], gateway: Key, read: TrackedRead) => V;
  /** By default as JSON. */
  readonly isSamePart?: (one: P | undefined, other: P | undefined) => boolean;
  readonly isSame?: (one: V, other: V) => boolean;
};

/**
 * None of a Gateway that does not exist. A route or ListenerSet that the Gateway refuses changes no value, whoever makes it name
 * the Gateway.
 */
export function attachedRoutesFrom(tracking: Tracking): AttachedRoutes {
  const parents = parentsOfGateway(tracking);
  // Those that name it. Most changes of a route leave it there.
  const named = groupsFrom(tracking, ROUTE_KINDS, (gateway, run) =>
    run.value(parents, gateway).flatMap(ref => routesNaming(run, keyOf(ref))),
  );
  const groups = new Derived<readonly Key[]>(
    tracking,
    attachmentKinds,
    (name, run) => {
      const [gateway = ''] = name.split(' ');
      const isAttached = attaching(run.value(parents, gateway), run.exceptStatus);
      return run.value(named.keys, name).filter(isAttached);
    },
    isEqual,
  );
  const partsOfAll: { read(name: string): unknown }[] = [];
  const combined = <P, V>(combination: Combination<P, V>) => {
    const { reads, ofGroup, ofGateway, isSamePart = isEqual, isSame = isEqual } = combination;
    const parts = new Derived<P | undefined>(
      tracking,
      reads,
      (name, run) => {
        const routes = run.value(groups, name);
        return routes.length > 0 ? ofGroup(routes, run) : undefined;
      },
      isSamePart,
    );
    partsOfAll.push(parts);
    return new Derived<V>(
      tracking,
      reads,
      (gateway, run) => {
        const all = run.value(named.of, gateway).map(({ at }) => run.value(parts, `${gateway} ${at}`));
        return ofGateway(
          all.filter(part => part !== undefined),
          gateway as Key,
          run,
        );
      },
      isSame,
    );
  };
  const keys = combined<readonly Key[], readonly Key[]>({
    reads: [],
    ofGroup: routes => routes,
    ofGateway: parts => parts.flat().sort(),
  });
  function* steps(gateway: Key): Generator<undefined, undefined> {
    const groupsOfGateway = named.of.read(gateway);
    for (const parts of partsOfAll) {
      for (const { at } of groupsOfGateway) {
        try {
          parts.read(`${gateway} ${at}`);
        } catch {
          // Whoever reads it gets the error.
        }
        yield;
      }
    }
  }
  return { keys, combined, steps };
}

/** By the key of a Gateway: itself and its ListenerSets, if it exists. */
function parentsOfGateway(tracking: Tracking): Derived<readonly Ref<'Gateway' | 'ListenerSet'>[]> {
  return new Derived<readonly Ref<'Gateway' | 'ListenerSet'>[]>(
    tracking,
    ['Gateway', 'ListenerSet', 'Namespace'],
    (key, { exceptStatus: read }) => {
      const ref = refOf(key as Key) as Ref<'Gateway'>;
      const gateway = read.get(ref);
      if (!gateway) return [];
      if (gateway.allowedListeners.from === 'None') return [ref];
      const resources = attachmentResourcesFrom(read);
      const listenerSets = read
        .find(listenerSetsByGateway, key)
        .filter(each => acceptsListenerSet(gateway, each, resources));
      return [ref, ...listenerSets.map(refTo)];
    },
    isEqual,
  );
}

function routesNaming(read: ReadObjects, parent: Key): readonly Key[] {
  return ROUTE_KINDS.flatMap((kind): readonly Key[] => read.members(routesByParent(kind), parent));
}

/** Whether a route attaches to one of some parents. */
function attaching(
  parents: readonly Ref<'Gateway' | 'ListenerSet'>[],
  read: ReadObjects,
): (key: Key) => boolean {
  const resources = attachmentResourcesFrom(read);
  const objects = parents.flatMap(ref => read.get<'Gateway' | 'ListenerSet'>(ref) ?? []);
  return key => {
    const route = read.get(refOf(key) as Ref<RouteKind>);
    return route !== undefined && objects.some(parent => listenersFor(route, parent, resources).length > 0);
  };
}
