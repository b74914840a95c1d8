import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, RouteKind } from '../../api/key.ts';
import { distinct } from '../../api/problem.ts';
import type { UnusedReason } from '../../api/reasons.ts';
import type { Resource } from '../../api/objects/resource.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { isMeshBackend, refTo } from '../../api/objects/references.ts';
import { Derived } from '../../store/derived.ts';
import { ResourceStore } from '../../store/store.ts';
import { Tracking } from '../../store/tracking.ts';
import type { TrackedRead } from '../../store/tracking.ts';
import { trafficIndexes } from '../../store/traffic/resources.ts';
import { trafficValues } from '../../store/traffic/values.ts';
import { trafficOfRoute } from '../../traffic/endpoints/route-traffic.ts';
import type { RouteTraffic } from '../../traffic/endpoints/route-traffic.ts';
import { problemsOfRule } from '../../traffic/policy/problems.ts';
import type { TlsBudgets } from '../../traffic/settings/tls-budget.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import type { UnusedBackend } from '../../traffic/unused.ts';
import type { Catalog, Declared, Finding } from './objects.ts';

/**
 * Resolves a route as the processes do, for each set of settings that its Gateways have; where Envoy Gateway merges those of a
 * GatewayClass, as for their Envoy, which has one cluster for the route.
 */
export type TrafficOf = (route: Route, mergedClass?: string) => readonly RouteTraffic[];

/** Resolves the routes among objects. */
export function trafficIn(catalog: Catalog): TrafficOf {
  const store = new ResourceStore(trafficIndexes, failure => {
    throw failure;
  });
  for (const { resource } of catalog.all()) if (resource) store.put(resource, true);
  const tracking = new Tracking(store);
  const dataPath = 'Proxy';
  const values = trafficValues(tracking, {
    dataPath,
    settingsFrom: 'MeshGateway',
    clusterEncoding: '',
    // Files have Services, but not their EndpointSlices.
    readsBackends: catalog.has('Service') && catalog.has('EndpointSlice'),
    readsServices: catalog.has('Service'),
  });
  const resolve = (key: string, read: TrackedRead, change: Partial<TrafficResources> = {}) => {
    const route = read.get(refOf(key as Key) as Ref<RouteKind>);
    const budgets: TlsBudgets = namespace => read.value(values.overTlsBudget, namespace);
    return route ? trafficOfRoute({ ...values.resources(read), ...change }, route, dataPath, budgets) : [];
  };
  const traffic = new Derived(tracking, (key, read) => resolve(key, read));
  const ofMerged = new Derived(tracking, (name, read) => {
    const settings = read.value(values.settingsInEnvoy, name);
    return resolve(name.split(' ').at(-1) ?? '', read, { gatewaySettings: () => settings });
  });
  return (route, mergedClass) => {
    const key = keyOf(refTo(route));
    return mergedClass === undefined ? traffic.read(key) : ofMerged.read(`${mergedClass} ${key}`);
  };
}

/** What only a status has, which objects in files need not have, or what is elsewhere if there is none of the kind. */
const NEEDS: Readonly<Partial<Record<UnusedReason, 'status' | Resource['kind']>>> = {
  BackendNotFound: 'MeshEndpoints',
  TailnetNotFound: 'MeshTailnet',
  NamespaceNotAllowed: 'Namespace',
  CertificateNotFound: 'ConfigMap',
  ProxyUnknown: 'status',
  RelayPortMissing: 'status',
  ExternalTargetNotResolved: 'status',
};

/** Finds what a route does not use, and why, where the objects are enough to decide it. */
export function checkTraffic(
  declared: Declared,
  route: Route,
  catalog: Catalog,
  trafficOf: TrafficOf,
): readonly Finding[] {
  const rules = trafficOf(route).flatMap(each => each.rules);
  const unused = distinct(rules.flatMap(rule => rule.unused)).filter(each => isDecided(each, catalog));
  return [
    ...weightless(declared, route),
    ...unused.map(({ object: _object, ...problem }) => declared.at(problem)),
  ];
}

function weightless(declared: Declared, { rules }: Route): readonly Finding[] {
  return rules.flatMap(({ backendRefs }, index) => {
    if (!backendRefs.some(isMeshBackend) || backendRefs.some(({ weight }) => weight > 0)) return [];
    const at = ['spec', 'rules', index];
    return [declared.at({ reason: 'NoWeight', at, text: 'all backendRefs have weight 0', fix: 'raise one' })];
  });
}

/** Finds what the MeshRoutePolicies of routes do not do for their rules; one may have many. */
export function checkPolicies(
  routes: readonly Route[],
  catalog: Catalog,
  trafficOf: TrafficOf,
): readonly Finding[] {
  const rules = routes.filter(isMeshRoute).flatMap(route => trafficOf(route).flatMap(each => each.rules));
  return distinct(rules.flatMap(({ rule }) => problemsOfRule(rule))).flatMap(problem => {
    const declared = problem.about && catalog.get(keyOf(problem.about as Ref));
    return declared ? [declared.at(problem)] : [];
  });
}

/** Whether the objects are enough to decide that a backend is not used. */
export function isDecided({ reason, object }: UnusedBackend, catalog: Catalog): boolean {
  const needed = NEEDS[reason];
  if (needed === 'status' ? !catalog.hasStatus : needed !== undefined && !catalog.has(needed)) return false;
  return reason !== 'BackendNotFound' || !catalog.isInvalid(object);
}

/** Whether a rule of a route sends traffic to MeshEndpoints. */
export function isMeshRoute(route: Route): boolean {
  return route.rules.some(({ backendRefs }) => backendRefs.some(isMeshBackend));
}
