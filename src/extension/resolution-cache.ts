import { keyOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref } from '../api/key.ts';
import { isAnchor, isMeshRoute } from '../api/objects/references.ts';
import type { Watcher } from '../store/derived.ts';
import type { ReadObjects } from '../store/resources.ts';
import { envoyAndRoute, gatewaysOfRoute } from '../store/traffic/gateway-settings.ts';
import type { ResolvedCluster, TrafficValues } from '../store/traffic/values.ts';
import type { AddressGuard } from '../traffic/address-guard.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import { loadAssignmentOf } from '../traffic/endpoints/load-assignment.ts';
import type { LoadAssignmentResult } from '../traffic/endpoints/load-assignment.ts';
import { parseEnvoyClusterName } from '../traffic/envoy-cluster-name.ts';
import type { EnvoyClusterName } from '../traffic/envoy-cluster-name.ts';
import { sharedSettings } from '../traffic/gateway-settings.ts';
import { mixedClusterNames } from '../traffic/resolve-route.ts';
import type { RuleShares } from '../traffic/rule-shares.ts';
import { settingsFor } from '../traffic/settings/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../traffic/settings/envoy-cluster-settings.ts';
import { overTlsBudgetOf } from '../traffic/settings/tls-budget.ts';
import type { TlsBudgets } from '../traffic/settings/tls-budget.ts';
import type { UnusedBackend } from '../traffic/unused.ts';

/** The endpoints of a cluster for the Envoys of one Gateway. */
export type ClusterSnapshot = LoadAssignmentResult & {
  /** The object of each backend, by the index of the backend in the rule. */
  readonly objects: ReadonlyMap<number, Key>;
};

/** Snapshots of clusters; a Gateway is named as in Envoy's `node.cluster`, which is `namespace/name`. */
export interface SnapshotCache {
  /** Returns undefined if no mesh backend has the cluster, and the same value while nothing differs. */
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

/** What clusters and Gateways resolve to. Hooks and EDS read the same values, so they agree. */
export interface ResolutionCache extends SnapshotCache {
  /**
   * For an Envoy of Gateways, of which it must be given all that have a MeshBinding. Returns undefined if the cluster must stay
   * as Envoy Gateway made it.
   */
  settingsOf(cluster: string, gateways: readonly Ref<'Gateway'>[]): EnvoyClusterSettings | undefined;
  /** Of the rule with a cluster of this name; undefined if its routes must stay as Envoy Gateway made them. */
  sharesOf(cluster: string): RuleShares | undefined;
  /** Whether an Envoy of Gateways connects to the mesh backends of a cluster through proxies. */
  isProxied(cluster: string, gateways: readonly Ref<'Gateway'>[]): boolean;
  /** The unused backends of mixed rules that keep Envoy Gateway's endpoints: no stream subscribes to these. */
  unusedOfMixedRules(): Iterable<UnusedInCluster>;
  /** The revision of the settings of a Gateway's clusters; undefined if none has a mesh backend. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** How many values are kept. */
  readonly size: number;
}

/** What hooks and EDS ask of the values that are derived from a store with the `trafficIndexes`. */
export function createResolutionCache(
  read: ReadObjects,
  { clusters, overTlsBudget, revisions, settings, settingsInEnvoy, guard }: TrafficValues,
  dataPath: DataPathMode,
): ResolutionCache {
  const budgets: TlsBudgets = namespace => overTlsBudget.read(namespace);
  const cachedSettingsFor = settingsForCache();
  const lastSnapshots = new WeakMap<ResolvedCluster, LastSnapshot>();
  const decidedFor = (cluster: EnvoyClusterName, gateways: readonly Ref<'Gateway'>[]) => {
    const [only] = gateways;
    if (gateways.length < 2) return only && settings.read(keyOf(only));
    const ofRoute = gatewaysOfRoute(read, cluster).filter(({ namespace, name }) =>
      gateways.some(each => each.name === name && each.namespace === namespace),
    );
    return sharedSettings(ofRoute, each => settings.read(keyOf(each)));
  };
  const resolvedFor = (cluster: string) =>
    clusters.peek(cluster) ?? (isMeshCluster(read, cluster) ? clusters.read(cluster) : undefined);
  return {
    snapshot: (cluster, gateway) => {
      const resolved = clusters.read(cluster);
      if (!resolved?.settings) return undefined;
      const decided = settingsInEnvoy.read(envoyAndRoute(gateway, cluster));
      const path = decided?.dataPath?.mode ?? dataPath;
      const given = cachedSettingsFor(resolved.settings, decided, resolved.rule);
      const last = lastSnapshots.get(resolved);
      if (last?.settings === given && last.path === path) return last.snapshot;
      const snapshot = snapshotOf(resolved, given, path, guard);
      lastSnapshots.set(resolved, { settings: given, path, snapshot });
      return snapshot;
    },
    watch: (cluster, gateway, watcher) => {
      clusters.watch(cluster, watcher);
      settingsInEnvoy.watch(envoyAndRoute(gateway, cluster), watcher);
    },
    unwatch: (cluster, gateway, watcher) => {
      clusters.unwatch(cluster, watcher);
      settingsInEnvoy.unwatch(envoyAndRoute(gateway, cluster), watcher);
    },
    settingsOf: (cluster, gateways) => {
      const resolved = resolvedFor(cluster);
      if (!resolved?.settings) return undefined;
      const { rule, settings: open, closed } = resolved;
      const given = closed && overTlsBudgetOf(rule.cluster, budgets) ? closed : open;
      return cachedSettingsFor(given, decidedFor(rule.cluster, gateways), rule);
    },
    sharesOf: cluster => resolvedFor(cluster)?.rule.shares,
    isProxied: (cluster, gateways) => {
      const resolved = resolvedFor(cluster);
      const decided = resolved && decidedFor(resolved.rule.cluster, gateways);
      return (decided?.dataPath?.mode ?? dataPath) === 'Proxy';
    },
    unusedOfMixedRules: () =>
      ROUTE_KINDS.flatMap(kind => read.list(kind))
        .flatMap(mixedClusterNames)
        .flatMap(cluster => {
          const resolved = clusters.read(cluster);
          return resolved && !resolved.settings ? [{ cluster, unused: resolved.rule.unused }] : [];
        }),
    revisionOf: gateway => revisions.read(keyOf(gateway))?.hash,
    get size() {
      return clusters.size + settingsInEnvoy.size + revisions.size + overTlsBudget.size;
    },
  };
}

/** The last snapshot of a cluster, which is the same for the same settings and data path. */
type LastSnapshot = {
  readonly settings: EnvoyClusterSettings;
  readonly path: DataPathMode;
  readonly snapshot: ClusterSnapshot;
};

/** Most clusters of a translation are not ours; this recognizes them without tracking dependencies. */
function isMeshCluster(read: ReadObjects, cluster: string): boolean {
  const name = parseEnvoyClusterName(cluster);
  const route = name && read.get(name);
  return route !== undefined && !isAnchor(route) && isMeshRoute(route);
}

/** Returns the same value for the same settings, by which edits of clusters are cached. */
function settingsForCache(): typeof settingsFor {
  const cached = new WeakMap<EnvoyClusterSettings, EnvoyClusterSettings>();
  return (given, decided, rule) => {
    const found = settingsFor(given, decided, rule);
    if (found === given) return given;
    const same = cached.get(given) ?? found;
    cached.set(given, same);
    return same;
  };
}

function snapshotOf(
  { rule, relays }: ResolvedCluster,
  settings: EnvoyClusterSettings,
  dataPath: DataPathMode,
  guard: AddressGuard,
): ClusterSnapshot {
  const { assignment, unused } = loadAssignmentOf(rule, settings, dataPath, {
    relays: tailnet => relays.get(tailnet),
    guard,
  });
  const objects = rule.backends.map(({ index, ref: { namespace, name } }): [number, Key] => [
    index,
    keyOf({ kind: 'MeshEndpoints', namespace, name }),
  ]);
  return { assignment, unused: [...rule.unused, ...unused], objects: new Map(objects) };
}
