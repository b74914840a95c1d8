import { deepStrictEqual } from 'node:assert';
import type { Route } from '../../../src/api/objects/gateway-api.ts';
import { keyOf, ROUTE_KINDS } from '../../../src/api/key.ts';
import type { Ref, ResourceKind } from '../../../src/api/key.ts';
import { NAMESPACE, relayName } from '../../../src/api/names.ts';
import { formatProblem } from '../../../src/api/problem.ts';
import { refTo } from '../../../src/api/objects/references.ts';
import type { Resource, ResourceOf } from '../../../src/api/objects/resource.ts';
import { DEFAULT_GUARD } from '../../../src/traffic/address-guard.ts';
import type { AddressGuard } from '../../../src/traffic/address-guard.ts';
import { loadAssignmentOf, withheldOf } from '../../../src/traffic/endpoints/load-assignment.ts';
import type { LoadAssignmentResult } from '../../../src/traffic/endpoints/load-assignment.ts';
import { cachedCaBundles } from '../../../src/traffic/upstream-tls.ts';
import { parseEnvoyClusterName } from '../../../src/traffic/envoy-cluster-name.ts';
import { envoyClusterSettingsOf } from '../../../src/traffic/settings/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../../../src/traffic/settings/envoy-cluster-settings.ts';
import { overTlsBudget, tlsNeedsOf } from '../../../src/traffic/settings/tls-budget.ts';
import type { TlsBudgets } from '../../../src/traffic/settings/tls-budget.ts';
import type { DataPathMode } from '../../../src/traffic/data-path.ts';
import { targetedRoutes } from '../../../src/traffic/policy/route-policy.ts';
import { relaysIn } from '../../../src/traffic/endpoints/relays.ts';
import { caInConfigMap } from '../../../src/traffic/trusted-ca.ts';
import type { TrafficResources } from '../../../src/traffic/traffic-resources.ts';
import { resolveEnvoyCluster } from '../../../src/traffic/resolve-route.ts';
import type { ResolvedRule } from '../../../src/traffic/resolve-route.ts';
import type { UnusedBackend } from '../../../src/traffic/unused.ts';
import { resourceOf } from '../store/resources.ts';

/** What of backends is reported as unused: where, and what users read. */
export function reportedIn(unused: readonly UnusedBackend[]) {
  return unused.map(each => {
    const { reason, object, endpoint } = each;
    return { reason, object, ...(endpoint !== undefined && { endpoint }), message: formatProblem(each) };
  });
}

/** TrafficResources of objects as users write them. */
export function resourcesFrom(objects: readonly object[], guard?: AddressGuard): TrafficResources {
  return resourcesOf(objects.map(resourceOf), guard);
}

/** TrafficResources of decoded objects. */
export function resourcesOf(resources: readonly Resource[], guard = DEFAULT_GUARD): TrafficResources {
  const readCaBundle = cachedCaBundles();
  const byKey = new Map(resources.map(resource => [keyOf(refTo(resource)), resource]));
  const get = <K extends ResourceKind>(ref: Ref<K>) => byKey.get(keyOf(ref)) as ResourceOf<K> | undefined;
  const list = <K extends ResourceKind>(kind: K) =>
    [...byKey.values()].filter((each): each is Extract<Resource, { kind: K }> => each.kind === kind);
  const slicesOf = (namespace: string, name: string) =>
    list('EndpointSlice').filter(
      ({ metadata, service }) => metadata.namespace === namespace && service === name,
    );
  return {
    route: get,
    meshRoutesIn: namespace =>
      ROUTE_KINDS.flatMap((kind): readonly Route[] => list(kind)).filter(
        ({ metadata }) => metadata.namespace === namespace,
      ),
    meshEndpoints: get,
    routePolicies: ref =>
      list('MeshRoutePolicy').filter(policy => targetedRoutes(policy).includes(keyOf(ref))),
    gateway: get,
    gatewayClass: name => get({ kind: 'GatewayClass', namespace: '', name }),
    trafficPolicies: () => list('BackendTrafficPolicy'),
    envoyProxy: get,
    listenerSet: get,
    tailnets: domain => list('MeshTailnet').filter(({ spec }) => spec.tailnet === domain),
    grants: namespace => list('ReferenceGrant').filter(({ metadata }) => metadata.namespace === namespace),
    backendTlsPolicies: namespace =>
      list('BackendTLSPolicy').filter(({ metadata }) => metadata.namespace === namespace),
    readsBackends: true,
    readsServices: true,
    service: get,
    endpointSlices: ({ namespace, name }) => slicesOf(namespace, name),
    relays: tailnet => relaysIn(slicesOf(NAMESPACE, relayName(tailnet))),
    backend: get,
    namespace: name => get({ kind: 'Namespace', namespace: '', name }),
    gatewaySettings: ({ namespace, name }) =>
      list('MeshBinding').find(
        ({ metadata, spec }) =>
          metadata.namespace === namespace && spec.targetRefs.some(target => target.name === name),
      )?.spec.settings,
    trusted: ref =>
      caInConfigMap(get({ kind: 'ConfigMap', namespace: ref.namespace, name: ref.name }), ref, readCaBundle),
    caBundle: readCaBundle,
    guard,
  };
}

/** The budgets of TLS settings in the namespaces of resources, which all have room together. */
export function tlsBudgetsOf(resources: TrafficResources): TlsBudgets {
  return namespace => overTlsBudget(tlsNeedsOf(resources, namespace), new Set());
}

/** How a cluster is resolved. */
export type Traffic = {
  readonly rule: ResolvedRule;
  readonly settings: EnvoyClusterSettings | undefined;
  /** By data path. */
  readonly through: Readonly<Record<DataPathMode, LoadAssignmentResult>>;
};

/** Resolves a cluster, which must be one with MeshEndpoints. */
export function trafficOf(resources: TrafficResources, cluster = 'httproute/default/web/rule/0'): Traffic {
  const rule = ruleOf(resources, cluster);
  if (!rule) throw new Error(`${cluster} has no MeshEndpoints`);
  const settings = envoyClusterSettingsOf(rule);
  const assigned = (path: DataPathMode): LoadAssignmentResult => {
    if (!settings) return { assignment: { cluster, localities: [] }, unused: [] };
    const result = loadAssignmentOf(rule, settings, path, resources);
    // The operator computes it alone.
    deepStrictEqual(withheldOf(rule, settings, path, resources), result.unused);
    return result;
  };
  return { rule, settings, through: { Proxy: assigned('Proxy'), Direct: assigned('Direct') } };
}

/** The rule of a cluster, if it has MeshEndpoints. */
export function ruleOf(resources: TrafficResources, cluster: string): ResolvedRule | undefined {
  const name = parseEnvoyClusterName(cluster);
  return name && resolveEnvoyCluster(resources, name);
}
