import { keyOf, refOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref } from '../api/key.ts';
import { gatewaysOf, isMeshBackend, refTo } from '../api/objects/references.ts';
import type { Resource } from '../api/objects/resource.ts';
import type { ReadResources } from '../store/resources.ts';
import { DEFAULT_GUARD } from '../traffic/address-guard.ts';
import type { AddressGuard } from '../traffic/address-guard.ts';
import { cachedCaBundles } from '../traffic/upstream-tls.ts';
import { commonDataPath, dataPathOf } from '../traffic/data-path.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import { parseEnvoyClusterName } from '../traffic/envoy-cluster-name.ts';
import { envoyClusterSettingsOf } from '../traffic/settings/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../traffic/settings/envoy-cluster-settings.ts';
import { loadAssignmentOf } from '../traffic/endpoints/load-assignment.ts';
import type { LoadAssignmentResult } from '../traffic/endpoints/load-assignment.ts';
import { mixedClusterNames, resolveEnvoyCluster } from '../traffic/resolve-route.ts';
import type { ResolvedRule } from '../traffic/resolve-route.ts';
import { revisionOf } from '../traffic/settings/revision.ts';
import { closedSettingsOf, isOverTlsBudget, overTlsBudget } from '../traffic/settings/tls-budget.ts';
import type { TlsBudgets } from '../traffic/settings/tls-budget.ts';
import { dependenciesOf, trackDependencies } from '../traffic/traffic-resources.ts';
import type { Relay, TrafficResources } from '../traffic/traffic-resources.ts';
import { cachedTrust } from '../traffic/trusted-ca.ts';
import type { UnusedBackend } from '../traffic/unused.ts';
import { DependencyCache, DependencyIndex } from './dependency-cache.ts';
import type { Watcher } from './dependency-cache.ts';
import { clusterEncoding } from './envoy-cluster/encoding-version.ts';
import { gatewaysOfClass, routesOf, trafficResourcesFrom } from './traffic-from-store.ts';

/** The endpoints of a cluster for the Envoys of one Gateway. */
export type ClusterSnapshot = LoadAssignmentResult & {
  /** The object of each backend, by the index of the backend in the rule. */
  readonly objects: ReadonlyMap<number, Key>;
};

/** Snapshots of clusters; a Gateway is named as in Envoy's `node.cluster`, which is `namespace/name`. */
export interface SnapshotCache {
  /** Returns undefined if no mesh backend has the cluster. */
  snapshot(cluster: string, gateway: string): ClusterSnapshot | undefined;
  /** Notifies the watcher each time that the last snapshot may have become stale. */
  watch(cluster: string, gateway: string, watcher: Watcher): void;
  unwatch(cluster: string, gateway: string, watcher: Watcher): void;
}

/** Backends of a cluster that get no traffic; undefined if not computed yet. */
export type UnusedInCluster = {
  readonly cluster: string;
  readonly unused?: readonly UnusedBackend[] | undefined;
};

/**
 * What clusters and Gateways resolve to. Values are computed when they are first read, and evicted when a resource changes
 * that they were computed from. Hooks and EDS read the same cache, so they agree.
 */
export interface ResolutionCache extends SnapshotCache {
  /** Returns undefined if the cluster must stay as Envoy Gateway made it. */
  settingsOf(cluster: string): EnvoyClusterSettings | undefined;
  /** The unused backends of mixed rules that keep Envoy Gateway's endpoints, so that no stream subscribes to them. */
  unusedOfMixedRules(): Iterable<UnusedInCluster>;
  /** The revision of the settings of a Gateway's clusters; undefined if none has a mesh backend. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** How many entries are cached. */
  readonly size: number;
  /** Unsubscribes from resources; values read later may be stale. */
  close(): void;
}

export type ResolutionOptions = {
  /** The data path of Gateways without a MeshBinding. */
  readonly dataPath: DataPathMode;
  /** The address that Envoy dials for EDS. */
  readonly edsTarget: string;
  /** The namespace of the mesh pods; undefined where there are none, or no EndpointSlices are read. */
  readonly podNamespace?: string | undefined;
  /** The namespace of the ConfigMap `mesh-trust`; undefined where the ConfigMaps of users are read themselves. */
  readonly trustNamespace?: string | undefined;
  readonly guard?: AddressGuard | undefined;
};

/** Creates the cache over resources that have the `extensionIndexes`. */
export function createResolutionCache(
  read: ReadResources,
  { dataPath, edsTarget, guard = DEFAULT_GUARD, ...namespaces }: ResolutionOptions,
): ResolutionCache {
  const dependencies = new DependencyIndex();
  const caches = { caBundle: cachedCaBundles(), publishedTrust: cachedTrust() };
  const cached = <V extends object>(compute: (name: string, inputs: Inputs) => V | undefined) =>
    new DependencyCache<V>((name, depend) => {
      const resources = trafficResourcesFrom(read, { found: depend, guard, ...caches, ...namespaces });
      return compute(name, { read, resources: trackDependencies(resources, depend), depend });
    }, dependencies);
  const clusters = cached((cluster, { resources }) => resolveCluster(cluster, resources));
  const overBudget = cached((namespace, { resources }) => overTlsBudget(resources, namespace));
  const budgets: TlsBudgets = namespace => overBudget.read(namespace) ?? new Set();
  const revisions = cached((gateway, inputs) => computeRevision(gateway, inputs, edsTarget));
  const dataPaths = cached((gateway, inputs) => computeDataPath(gateway, inputs, dataPath));
  const unsubscribe = read.subscribe(({ key }) => {
    for (const dependency of invalidatedBy(key, read.get(refOf(key)))) dependencies.invalidate(dependency);
  });
  return {
    snapshot: (cluster, gateway) =>
      snapshotOf(clusters.read(cluster), () => dataPaths.read(gateway)?.mode ?? dataPath, guard),
    watch: (cluster, gateway, watcher) => {
      clusters.watch(cluster, watcher);
      dataPaths.watch(gateway, watcher);
    },
    unwatch: (cluster, gateway, watcher) => {
      clusters.unwatch(cluster, watcher);
      dataPaths.unwatch(gateway, watcher);
    },
    settingsOf: cluster => {
      const known = clusters.peek(cluster);
      const resolved = known ?? (isMeshCluster(read, cluster) ? clusters.read(cluster) : undefined);
      const { rule, settings, closed } = resolved ?? {};
      return rule && closed && isOverTlsBudget(rule.cluster, budgets) ? closed : settings;
    },
    unusedOfMixedRules: () =>
      ROUTE_KINDS.flatMap(kind => read.list(kind))
        .flatMap(mixedClusterNames)
        .flatMap(cluster => {
          const resolved = clusters.read(cluster);
          return resolved && !resolved.settings ? [{ cluster, unused: resolved.rule.unused }] : [];
        }),
    revisionOf: gateway => revisions.read(keyOf(gateway))?.revision,
    get size() {
      return clusters.size + dataPaths.size + revisions.size + overBudget.size;
    },
    close: unsubscribe,
  };
}

/** What values are computed from: reads through `resources` are tracked, any other read must call `depend`. */
type Inputs = {
  readonly read: ReadResources;
  readonly resources: TrafficResources;
  readonly depend: (dependency: string) => void;
};

type ResolvedCluster = {
  readonly rule: ResolvedRule;
  readonly settings: EnvoyClusterSettings | undefined;
  /** Those without TLS, for a rule that the budget of its namespace has no room for. */
  readonly closed: EnvoyClusterSettings | undefined;
  /** By MeshTailnet; read for UDP only. */
  readonly relays: ReadonlyMap<string, readonly Relay[] | undefined>;
};

function resolveCluster(cluster: string, resources: TrafficResources): ResolvedCluster | undefined {
  const name = parseEnvoyClusterName(cluster);
  const rule = name && resolveEnvoyCluster(resources, name);
  const settings = rule && envoyClusterSettingsOf(rule);
  const closed = settings && closedSettingsOf(settings);
  return rule && { rule, settings, closed, relays: relaysOf(rule, resources) };
}

/** Settings do not depend on relays, so a change of a relay changes no revision. */
function relaysOf(
  { protocol, backends }: ResolvedRule,
  resources: TrafficResources,
): ResolvedCluster['relays'] {
  if (protocol !== 'UDP') return new Map();
  const tailnets = backends.flatMap(({ endpoints: [first] }) => (first ? [first.tailnet.metadata.name] : []));
  return new Map([...new Set(tailnets)].map(tailnet => [tailnet, resources.relays(tailnet)]));
}

/** Most clusters of a translation are not ours; this recognizes them without tracking dependencies. */
function isMeshCluster(read: ReadResources, cluster: string): boolean {
  const name = parseEnvoyClusterName(cluster);
  const route = name && read.get({ kind: name.kind, namespace: name.namespace, name: name.name });
  return route?.rules.some(({ backendRefs }) => backendRefs.some(isMeshBackend)) === true;
}

function snapshotOf(
  resolved: ResolvedCluster | undefined,
  dataPath: () => DataPathMode,
  guard: AddressGuard,
): ClusterSnapshot | undefined {
  if (!resolved?.settings) return undefined;
  const { rule, settings, relays } = resolved;
  const { assignment, unused } = loadAssignmentOf(rule, settings, dataPath(), {
    relays: tailnet => relays.get(tailnet),
    guard,
  });
  const objects = rule.backends.map(({ index, ref: { namespace, name } }): [number, Key] => [
    index,
    keyOf({ kind: 'MeshEndpoints', namespace, name }),
  ]);
  return { assignment, unused: [...rule.unused, ...unused], objects: new Map(objects) };
}

/** Returns undefined for the default data path, so that only Gateways with another one are cached. */
function computeDataPath(
  gateway: string,
  inputs: Inputs,
  defaultPath: DataPathMode,
): { readonly mode: DataPathMode } | undefined {
  const gateways = gatewaysOfEnvoy(gateway, inputs);
  if (gateways.length === 0) return undefined;
  const mode = commonDataPath(gateways.map(each => dataPathOf(inputs.resources, each, defaultPath)));
  return mode === defaultPath ? undefined : { mode };
}

/** The Gateways that an Envoy serves: `namespace/name` is one, and a GatewayClass is all of its Gateways, merged. */
function gatewaysOfEnvoy(nodeCluster: string, { read, depend }: Inputs): readonly Ref<'Gateway'>[] {
  const [first = '', name, end] = nodeCluster.split('/', 3);
  if (first === '' || name === '' || end !== undefined) return [];
  if (name !== undefined) return [{ kind: 'Gateway', namespace: first, name }];
  const gateways = gatewaysOfClass(read, first);
  depend(classDependency(first));
  for (const gateway of gateways) depend(keyOf(gateway));
  return gateways;
}

function computeRevision(
  gateway: string,
  { read, resources, depend }: Inputs,
  edsTarget: string,
): { readonly revision: string } | undefined {
  const ref = refOf(gateway as Key) as Ref<'Gateway'>;
  const routes = routesOf(read, ref);
  depend(routesDependency(gateway));
  for (const route of routes) depend(keyOf(refTo(route)));
  const revision = revisionOf(resources, {
    gateway: ref,
    routes,
    clusterEncoding: clusterEncoding(edsTarget),
  });
  return revision === undefined ? undefined : { revision };
}

function classDependency(name: string): string {
  return `class:${name}`;
}

function routesDependency(gateway: string): string {
  return `routes:${gateway}`;
}

/**
 * The dependencies that a change of an object invalidates: its key, which values computed from its previous state depend
 * on, and the index values of its new state.
 */
function invalidatedBy(key: Key, object: Resource | undefined): readonly string[] {
  if (!object) return [key];
  const routes = 'parentRefs' in object ? gatewaysOf(object).map(routesDependency) : [];
  const classes = object.kind === 'Gateway' ? [classDependency(object.gatewayClassName)] : [];
  return [key, ...dependenciesOf(object), ...routes, ...classes];
}
