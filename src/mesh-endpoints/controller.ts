import type { Route } from '../api/gateway-api.ts';
import { API_VERSION } from '../api/generated/kinds.ts';
import type { Kinds } from '../api/generated/types.ts';
import { keyOf, refOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref, RouteKind } from '../api/key.ts';
import { datagramTailnetsOf, meshBackendsOf, refTo, tailnetsOf } from '../api/references.ts';
import { endpointsByTailnet, routesTo } from '../resources/indexes.ts';
import { byNamespace } from '../resources/resources.ts';
import type { AnyIndex, Index, ReadResources, RecordEvents, WriteResources } from '../resources/resources.ts';
import type { Controller } from '../runtime/controller.ts';
import { byKey, whenChanges, whenGenerationChanges } from '../runtime/trigger.ts';
import type { Trigger } from '../runtime/trigger.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import { oldestTailnet } from '../traffic/resolve-backend-ref.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import { statusOf } from './status.ts';
import type { RelayPorts } from './status.ts';

type MeshEndpoints = Kinds['MeshEndpoints'];
type Status = NonNullable<MeshEndpoints['status']>;

/** What the controller works with. */
export type EndpointsDeps = {
  /** Of a store with the indexes below and the `sharedIndexes`. */
  readonly read: ReadResources;
  readonly write: Pick<WriteResources, 'replaceStatus'>;
  readonly events: RecordEvents;
  readonly traffic: TrafficResources;
  /** The data path of Gateways that have no other. */
  readonly dataPath: DataPathMode;
  /** Undefined where no relays run. */
  readonly relayPorts: RelayPorts | undefined;
  /** The time of day. */
  readonly now: () => Date;
};

/** Writes the status of each MeshEndpoints. */
export function endpointsController(deps: EndpointsDeps): Controller<'MeshEndpoints'> {
  const { read, write, events, traffic, dataPath, relayPorts, now } = deps;
  return {
    name: 'mesh-endpoints',
    kind: 'MeshEndpoints',
    triggers,
    subscribe: enqueue =>
      relayPorts?.subscribe(name => {
        for (const ref of usersOf(name, read)) enqueue(ref);
      }),
    reconcile: async ref => {
      const object = read.get(ref);
      if (!object || object.spec.paused) return { requeue: 'on-change' };
      const tailnet = oldestTailnet(traffic.tailnets(object.spec.tailnet));
      const status = statusOf({
        object,
        tailnet,
        relayPorts: tailnet && relayPorts?.of(tailnet.metadata.name),
        routes: routesTo(keyOf(ref), read),
        resources: traffic,
        dataPath,
        now: now(),
      });
      if (status === object.status) return { requeue: 'on-change' };
      await write.replaceStatus(object, status);
      recordTransition(object, status, events);
      return { requeue: 'on-change' };
    },
  };
}

/** The MeshEndpoints of the domain of a MeshTailnet that have UDP endpoints: others have no relay ports. */
function usersOf(name: string, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
  if (!tailnet) return [];
  const users = read.find(endpointsByTailnet, tailnet.spec.tailnet);
  return users.filter(user => datagramTailnetsOf(user).length > 0).map(refTo);
}

/** Records that routes do not resolve, or do so again. */
function recordTransition(object: MeshEndpoints, status: Status, events: RecordEvents): void {
  const [before, now] = [object.status, status].map(each =>
    each?.conditions?.find(({ type }) => type === 'RoutesResolved'),
  );
  if (!now || (before?.status === now.status && before.reason === now.reason)) return;
  const isFailure = now.status === 'False';
  if (!isFailure && before?.status !== 'False') return;
  const { namespace, name, uid } = object.metadata;
  events.record({
    regarding: {
      ...{ apiVersion: API_VERSION, kind: 'MeshEndpoints', name },
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
    },
    type: isFailure ? 'Warning' : 'Normal',
    reason: now.reason,
    action: 'Resolve',
    note: now.message,
  });
}

function intoNamespace<K extends RouteKind>(kind: K): Index<K> {
  return { name: `endpoints: ${kind} by other namespace`, kind, valuesOf: route => otherNamespacesOf(route) };
}

/** The namespaces whose ReferenceGrants must permit what a route to MeshEndpoints refers to. */
function otherNamespacesOf({ metadata, rules }: Route): readonly string[] {
  const refs = rules.flatMap(({ backendRefs }) => backendRefs);
  const others = refs.map(({ namespace }) => namespace).filter(each => each !== metadata.namespace);
  return [...new Set(others)];
}

const routesIntoNamespace = ROUTE_KINDS.map(intoNamespace);

/** The indexes that the store must have been made with, beside the `sharedIndexes`. */
export const endpointsIndexes: readonly AnyIndex[] = routesIntoNamespace;

/**
 * The MeshEndpoints of all routes to a MeshEndpoints, itself included: how one backend of a rule resolves depends on the
 * others.
 */
function withSharedRoutes(key: Key, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const keys = new Set([key, ...routesTo(key, read).flatMap(meshBackendsOf)]);
  return [...keys].map(each => refOf(each) as Ref<'MeshEndpoints'>);
}

function withSharedRoutesOf(
  objects: readonly MeshEndpoints[],
  read: ReadResources,
): readonly Ref<'MeshEndpoints'>[] {
  return objects.flatMap(object => withSharedRoutes(keyOf(refTo(object)), read));
}

/** The MeshEndpoints of the routes that a ReferenceGrant may concern. */
function byGrants(namespace: string, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  return routesIntoNamespace
    .flatMap((index): readonly Route[] => read.find(index, namespace))
    .flatMap(meshBackendsOf)
    .map(key => refOf(key) as Ref<'MeshEndpoints'>);
}

/** Which MeshEndpoints a change concerns. A change of the data path of a Gateway is found by the resync. */
const triggers: readonly Trigger<'MeshEndpoints'>[] = [
  ...ROUTE_KINDS.map(kind => whenGenerationChanges(kind, meshBackendsOf, byKey<'MeshEndpoints'>)),
  whenGenerationChanges(
    'MeshEndpoints',
    object => [keyOf(refTo(object))],
    (key, read) => withSharedRoutes(key as Key, read),
  ),
  whenChanges('MeshTailnet', tailnetsOf, (domain, read) =>
    withSharedRoutesOf(read.find(endpointsByTailnet, domain), read),
  ),
  whenChanges(
    'Namespace',
    ({ metadata }) => [metadata.name],
    (name, read) => withSharedRoutesOf(read.find(byNamespace('MeshEndpoints'), name), read),
  ),
  whenChanges('ReferenceGrant', ({ metadata }) => [metadata.namespace ?? ''], byGrants),
];
