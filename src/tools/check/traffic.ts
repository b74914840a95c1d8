import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind, RouteKind } from '../../api/key.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { distinct } from '../../api/problem.ts';
import type { Problem } from '../../api/problem.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { isMeshBackend, isMeshRoute, refTo } from '../../api/objects/references.ts';
import { Derived } from '../../store/derived.ts';
import { ResourceStore } from '../../store/store.ts';
import { Tracking } from '../../store/tracking.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import { trafficIndexes } from '../../store/traffic/resources.ts';
import { trafficValues } from '../../store/traffic/values.ts';
import type { TrafficOptions } from '../../store/traffic/values.ts';
import { routingKinds } from '../../traffic/access.ts';
import { trafficOfRoute } from '../../traffic/endpoints/route-traffic.ts';
import { resolveTarget } from '../../traffic/policy/targets.ts';
import type { ResolvedTarget } from '../../traffic/policy/targets.ts';
import { refusedMirrors } from '../../traffic/resolve-route.ts';
import type { TlsBudgets } from '../../traffic/settings/tls-budget.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import type { Catalog, Finding } from './objects.ts';
import { outcomesOf } from './outcome.ts';
import type { KnownObjects } from './known.ts';
import type { RouteOutcome } from './outcome.ts';
import { withExpected } from './undiscovered.ts';

/**
 * Resolves a route as the processes do, for each set of settings that its Gateways have; where Envoy Gateway merges those of a
 * GatewayClass, as for their Envoy, which has one cluster for the route.
 */
export type TrafficOf = (route: Route, mergedClass?: string) => readonly RouteOutcome[];

/** How Envoy reaches the mesh, and which addresses may get traffic, as the processes are configured. */
export type TrafficSettings = Partial<Pick<TrafficOptions, 'dataPath' | 'podNamespace' | 'guard'>>;

/** What the processes make of routes and of the targets of policies. */
type Traffic = {
  readonly of: TrafficOf;
  readonly targetsOf: (policy: Kinds['MeshRoutePolicy']) => readonly ResolvedTarget[];
};

/** Resolves the routes and policies among objects. */
export function trafficIn(catalog: Catalog, settings: TrafficSettings = {}): Traffic {
  const tracking = trackingOf(catalog);
  const { values, reads, resolve } = resolverFrom(tracking, settings, catalog);
  const traffic = new Derived(tracking, reads, (key, read) => resolve(key as Key, read));
  const ofMerged = new Derived(tracking, reads, (name, read) => {
    const ofEnvoy = read.value(values.settingsInEnvoy, name);
    return resolve((name.split(' ').at(-1) ?? '') as Key, read, { gatewaySettings: () => ofEnvoy });
  });
  const targets = new Derived(tracking, reads, (key, read) => {
    const policy = read.get(refOf(key as Key) as Ref<'MeshRoutePolicy'>);
    const resources = values.settingsResources(read);
    return policy?.spec.targetRefs.map(target => resolveTarget(policy, target, resources)) ?? [];
  });
  return {
    of: (route, mergedClass) => {
      const key = keyOf(refTo(route));
      return mergedClass === undefined ? traffic.read(key) : ofMerged.read(`${mergedClass} ${key}`);
    },
    targetsOf: policy => targets.read(keyOf(refTo(policy))),
  };
}

/** A store with the objects; those that have not found their devices yet have an endpoint in place of them. */
export function trackingOf(catalog: Catalog): Tracking {
  const store = new ResourceStore(trafficIndexes, failure => {
    throw failure;
  });
  for (const [index, { resource }] of catalog.all().entries())
    if (resource)
      store.put(resource.kind === 'MeshEndpoints' ? withExpected(resource, index) : resource, true);
  return new Tracking(store);
}

/** Resolves routes of a store with the `trafficIndexes`, and decides what becomes of their requests; it reads objects of these kinds. */
export function resolverFrom(
  tracking: Tracking,
  { dataPath = 'Proxy', podNamespace, guard }: TrafficSettings,
  known: KnownObjects,
) {
  // Files have Services, but not their EndpointSlices.
  const readsBackends = known.has('Service') && known.has('EndpointSlice');
  const values = trafficValues(tracking, {
    dataPath,
    guard,
    settingsFrom: 'MeshGateway',
    clusterEncoding: '',
    podNamespace: known.has('EndpointSlice') ? podNamespace : undefined,
    readsBackends,
    readsServices: known.has('Service'),
  });
  const resolve = (key: Key, read: TrackedRead, change: Partial<TrafficResources> = {}) => {
    const route = read.get(refOf(key) as Ref<RouteKind>);
    if (!route) return [];
    const budgets: TlsBudgets = namespace => read.value(values.overTlsBudget, namespace);
    const resources = { ...values.resources(read), ...change };
    return outcomesOf(route, trafficOfRoute(resources, route, dataPath, budgets), resources, known);
  };
  const reads: readonly ResourceKind[] = [...values.reads, ...routingKinds, 'MeshGateway'];
  return { values, reads, resolve };
}

/** Finds what keeps requests for routes from their backends, where the objects are enough to decide it. */
export function checkTraffic(
  routes: readonly Route[],
  catalog: Catalog,
  trafficOf: TrafficOf,
): readonly Finding[] {
  const rules = routes.filter(isMeshRoute).flatMap(route => trafficOf(route).flatMap(each => each.rules));
  const problems = [...rules.flatMap(each => each.problems), ...routes.flatMap(mirrorsBesideServices)];
  // What is wrong with a policy or a MeshTailnet is so for many rules.
  return distinct(problems).flatMap(problem => {
    const declared = problem.about && catalog.get(keyOf(problem.about as Ref));
    return declared ? [declared.at(problem)] : [];
  });
}

/** Those of rules with MeshEndpoints among their backends are problems of these. */
function mirrorsBesideServices(route: Route): readonly Problem[] {
  return refusedMirrors(route).filter(({ at = [] }) => {
    const { backendRefs = [] } = route.rules[Number(at[2])] ?? {};
    return !backendRefs.some(isMeshBackend);
  });
}
