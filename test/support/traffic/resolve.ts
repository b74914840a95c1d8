import { keyOf } from '../../../src/api/key.ts';
import type { Ref, ResourceKind } from '../../../src/api/key.ts';
import { refTo } from '../../../src/api/references.ts';
import type { Resource, ResourceOf } from '../../../src/api/resource.ts';
import { loadAssignmentOf } from '../../../src/traffic/load-assignment.ts';
import type { LoadAssignmentResult } from '../../../src/traffic/load-assignment.ts';
import { readCaBundle } from '../../../src/traffic/upstream-tls.ts';
import { parseEnvoyClusterName } from '../../../src/traffic/envoy-cluster-name.ts';
import { envoyClusterSettingsOf } from '../../../src/traffic/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../../../src/traffic/envoy-cluster-settings.ts';
import type { DataPathMode } from '../../../src/traffic/data-path.ts';
import type { TrafficResources } from '../../../src/traffic/traffic-resources.ts';
import { resolveEnvoyCluster } from '../../../src/traffic/resolve-route.ts';
import type { ResolvedRule } from '../../../src/traffic/resolve-route.ts';
import { resourceOf } from '../resources.ts';

/** What objects declare, given as authors write them. */
export function declaredFrom(objects: readonly object[]): TrafficResources {
  return declaredOf(objects.map(resourceOf));
}

/** What objects declare, given as they are read. */
export function declaredOf(resources: readonly Resource[]): TrafficResources {
  const byKey = new Map(resources.map(resource => [keyOf(refTo(resource)), resource]));
  const get = <K extends ResourceKind>(ref: Ref<K>) => byKey.get(keyOf(ref)) as ResourceOf<K> | undefined;
  const list = <K extends ResourceKind>(kind: K) =>
    [...byKey.values()].filter((each): each is Extract<Resource, { kind: K }> => each.kind === kind);
  return {
    route: get,
    meshEndpoints: get,
    gateway: get,
    tailnets: domain => list('MeshTailnet').filter(({ spec }) => spec.tailnet === domain),
    grants: namespace => list('ReferenceGrant').filter(({ metadata }) => metadata.namespace === namespace),
    service: get,
    endpointSlices: ({ namespace, name }) =>
      list('EndpointSlice').filter(
        ({ metadata, service }) => metadata.namespace === namespace && service === name,
      ),
    backend: get,
    namespace: name => get({ kind: 'Namespace', namespace: '', name }),
    binding: ({ namespace, name }) =>
      list('MeshBinding').find(
        ({ metadata, spec }) =>
          metadata.namespace === namespace && spec.targetRefs.some(target => target.name === name),
      ),
    caBundle: readCaBundle,
  };
}

/** Everything that traffic says of a cluster. */
export type Traffic = {
  readonly rule: ResolvedRule;
  readonly needs: EnvoyClusterSettings | undefined;
  /** By way of the proxies, and by none. */
  readonly through: Readonly<Record<DataPathMode, LoadAssignmentResult>>;
};

/** Everything that traffic says of a cluster, which must be one of ours. */
export function trafficOf(declared: TrafficResources, cluster = 'httproute/default/web/rule/0'): Traffic {
  const rule = ruleOf(declared, cluster);
  if (!rule) throw new Error(`${cluster} is left alone`);
  const needs = envoyClusterSettingsOf(rule);
  const assigned = (path: DataPathMode): LoadAssignmentResult =>
    needs ? loadAssignmentOf(rule, needs, path) : { assignment: { cluster, localities: [] }, unused: [] };
  return { rule, needs, through: { Proxy: assigned('Proxy'), Direct: assigned('Direct') } };
}

/** The rule behind a cluster, where it is one of ours. */
export function ruleOf(declared: TrafficResources, cluster: string): ResolvedRule | undefined {
  const name = parseEnvoyClusterName(cluster);
  return name && resolveEnvoyCluster(declared, name);
}
