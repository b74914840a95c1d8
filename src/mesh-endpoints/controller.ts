import type { Route } from '../api/gateway-api.ts';
import type { Kinds, MeshEndpoint } from '../api/generated/types.ts';
import { BACKEND_KINDS, keyOf, refOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref, RouteKind } from '../api/key.ts';
import { datagramTailnetsOf, gatewaysOf, meshBackendsOf, refTo, tailnetsOf } from '../api/references.ts';
import type { HealthMonitor } from '../health/health.ts';
import { endpointsByTailnet, findWithCaRef, routesTo } from '../resources/indexes.ts';
import { byNamespace } from '../resources/resources.ts';
import type { AnyIndex, Index, ReadResources, RecordEvents, WriteResources } from '../resources/resources.ts';
import type { Controller } from '../runtime/controller.ts';
import { byKey, whenChanges, whenGenerationChanges } from '../runtime/trigger.ts';
import type { Trigger } from '../runtime/trigger.ts';
import { isAllowed } from '../traffic/backend-refs.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import { oldestTailnet } from '../traffic/resolve-backend-ref.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import type { UnusedBackend } from '../traffic/unused.ts';
import { checkedEndpoints, planEndpoints } from './entries.ts';
import { eventsOf } from './events.ts';
import { readInputs } from './inputs.ts';
import type { InputSource } from './inputs.ts';
import type { GatewayBinding } from './programmed.ts';
import type { RelayPorts } from './relay-ports.ts';
import { unusedOfRoute } from './routes.ts';
import { pausedStatusOf, statusOf } from './status.ts';
import type { Situation } from './status.ts';

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
  /** The revision that the MeshBinding of a Gateway must have; undefined where the Gateway has no mesh clusters. */
  readonly revisionOf: (gateway: Ref<'Gateway'>) => string | undefined;
  /** Undefined where no relays run. */
  readonly relayPorts: RelayPorts | undefined;
  readonly health: HealthMonitor;
  /** Where what endpoints refer to outside of their object is read. */
  readonly inputs: readonly InputSource[];
  /** The time of day. */
  readonly now: () => Date;
};

/** Writes the status of each MeshEndpoints. */
export function endpointsController(deps: EndpointsDeps): Controller<'MeshEndpoints'> {
  const { read, write, events, relayPorts, health, inputs, now } = deps;
  const resolutions = new Resolutions(deps);
  const gather = gatherer(deps, resolutions);
  return {
    name: 'mesh-endpoints',
    kind: 'MeshEndpoints',
    triggers: triggersOf(resolutions),
    subscribe: enqueue => {
      const unsubscribers = [
        relayPorts?.subscribe(name => {
          for (const ref of usersOf(name, read)) enqueue(ref);
        }),
        health.subscribe(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>)),
        ...inputs.map(source => source.subscribe?.(key => enqueue(refOf(key) as Ref<'MeshEndpoints'>))),
      ];
      return () => {
        for (const unsubscribe of unsubscribers) unsubscribe?.();
      };
    },
    reconcile: async (ref, { signal }) => {
      const object = read.get(ref);
      if (!object || object.spec.paused) {
        health.remove(keyOf(ref));
        for (const source of inputs) source.forget?.(keyOf(ref));
      }
      if (!object) return { requeue: 'on-change' };
      const status = object.spec.paused
        ? pausedStatusOf(object, now())
        : statusOf(await gather(object, signal));
      if (status === object.status) return { requeue: 'on-change' };
      await write.replaceStatus(object, status);
      for (const event of eventsOf(object, status)) events.record(event);
      return { requeue: 'on-change' };
    },
  };
}

/** Reads everything that decides the status of an object, and sets its checks. */
function gatherer(
  deps: EndpointsDeps,
  resolutions: Resolutions,
): (object: MeshEndpoints, signal: AbortSignal) => Promise<Situation> {
  const { read, traffic, relayPorts, health, inputs, now } = deps;
  return async (object, signal) => {
    const key = keyOf(refTo(object));
    const tailnet = oldestTailnet(traffic.tailnets(object.spec.tailnet));
    const mayUse =
      tailnet !== undefined &&
      isAllowed(traffic, tailnet.spec.allowedNamespaces, object.metadata.namespace ?? '');
    const planned = planEndpoints({
      object,
      tailnet: mayUse ? tailnet : undefined,
      relayPorts: tailnet && relayPorts?.of(tailnet.metadata.name),
      inputs: await readInputs(inputs, object, signal),
      readCa: pem => traffic.caBundle(pem),
    });
    health.set(key, checkedEndpoints(planned));
    const routes = routesTo(key, read);
    return {
      object,
      tailnet,
      isAllowed: mayUse,
      planned,
      verdictOf: endpoint => health.verdict(key, endpoint),
      routes,
      bindings: bindingsOf(routes, deps),
      unusedOf: (route, status) => resolutions.unusedOf(route, object, status),
      now: now(),
    };
  };
}

/** The Gateways that routes name, each once. */
function bindingsOf(
  routes: readonly Route[],
  { traffic, revisionOf }: Pick<EndpointsDeps, 'traffic' | 'revisionOf'>,
): readonly GatewayBinding[] {
  return [...new Set(routes.flatMap(gatewaysOf))].map(key => {
    const gateway = refOf(key) as Ref<'Gateway'>;
    return { gateway, revision: revisionOf(gateway), binding: traffic.binding(gateway) };
  });
}

/** What routes do not use, computed once for all MeshEndpoints of a route: a route may name 256 with 1000 endpoints each. */
class Resolutions {
  readonly #deps: Pick<EndpointsDeps, 'traffic' | 'dataPath'>;
  /** A changed route is another object. */
  #unused = new WeakMap<Route, readonly UnusedBackend[]>();

  constructor(deps: Pick<EndpointsDeps, 'traffic' | 'dataPath'>) {
    this.#deps = deps;
  }

  /** Whether an endpoint of UDP or with externalTarget is used depends on its status, which is perhaps not written yet. */
  unusedOf(route: Route, object: MeshEndpoints, status: Status): readonly UnusedBackend[] {
    const { traffic, dataPath } = this.#deps;
    if (object.spec.endpoints?.some(dependsOnStatus)) {
      const key = keyOf(refTo(object));
      const meshEndpoints: TrafficResources['meshEndpoints'] = ref =>
        keyOf(ref) === key ? { ...object, status } : traffic.meshEndpoints(ref);
      return unusedOfRoute(route, { ...traffic, meshEndpoints }, dataPath);
    }
    const unused = this.#unused.get(route) ?? unusedOfRoute(route, traffic, dataPath);
    this.#unused.set(route, unused);
    return unused;
  }

  /** Must be called when anything but a route has changed that routes depend on. */
  forgetAll(): void {
    this.#unused = new WeakMap();
  }
}

function dependsOnStatus({ protocol, externalTarget }: MeshEndpoint): boolean {
  return protocol === 'UDP' || externalTarget !== undefined;
}

/** The MeshEndpoints of the domain of a MeshTailnet that have UDP endpoints: others have no relay ports. */
function usersOf(name: string, read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const tailnet = read.get({ kind: 'MeshTailnet', namespace: '', name });
  if (!tailnet) return [];
  const users = read.find(endpointsByTailnet, tailnet.spec.tailnet);
  return users.filter(user => datagramTailnetsOf(user).length > 0).map(refTo);
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

/** The MeshEndpoints of routes that Envoy Gateway has not translated, as far as their status shows. */
function notProgrammed(read: ReadResources): readonly Ref<'MeshEndpoints'>[] {
  const waiting = read.list('MeshEndpoints').filter(({ status }) => {
    if (!status?.routes) return false;
    return !status.conditions?.some(each => each.type === 'Programmed' && each.status === 'True');
  });
  return waiting.map(refTo);
}

/** Which MeshEndpoints a change concerns. What changes of the last kinds concern is found by the resync. */
function triggersOf(resolutions: Resolutions): readonly Trigger<'MeshEndpoints'>[] {
  const forgetting =
    (refsOf: Trigger<'MeshEndpoints'>['refsOf']): Trigger<'MeshEndpoints'>['refsOf'] =>
    (value, read) => {
      resolutions.forgetAll();
      return refsOf(value, read);
    };
  return [
    ...ROUTE_KINDS.map(kind => whenGenerationChanges(kind, meshBackendsOf, byKey<'MeshEndpoints'>)),
    whenGenerationChanges(
      'MeshEndpoints',
      object => [keyOf(refTo(object))],
      forgetting((key, read) => withSharedRoutes(key as Key, read)),
    ),
    whenChanges(
      'MeshTailnet',
      tailnetsOf,
      forgetting((domain, read) => withSharedRoutesOf(read.find(endpointsByTailnet, domain), read)),
    ),
    whenChanges(
      'Namespace',
      ({ metadata }) => [metadata.name],
      forgetting((name, read) => withSharedRoutesOf(read.find(byNamespace('MeshEndpoints'), name), read)),
    ),
    whenChanges(
      'ConfigMap',
      ({ metadata }) => [metadata.name],
      forgetting((_, read) => withSharedRoutesOf(findWithCaRef(read), read)),
    ),
    whenChanges('ReferenceGrant', ({ metadata }) => [metadata.namespace ?? ''], forgetting(byGrants)),
    whenGenerationChanges(
      'MeshBinding',
      () => ['MeshBinding'],
      forgetting(() => []),
    ),
    whenChanges(
      'MeshBinding',
      () => ['MeshBinding'],
      (_, read) => notProgrammed(read),
    ),
    ...BACKEND_KINDS.map(kind =>
      whenChanges(
        kind,
        () => [kind],
        forgetting(() => []),
      ),
    ),
  ];
}
