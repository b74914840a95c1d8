import { keyOf, refOf, ROUTE_KINDS } from '../api/key.ts';
import type { Key, Ref } from '../api/key.ts';
import { gatewaysOf, isMeshBackend, refTo } from '../api/references.ts';
import type { Resource } from '../api/resource.ts';
import type { ReadResources } from '../resources/resources.ts';
import { loadAssignmentOf } from '../traffic/load-assignment.ts';
import { cachedCaBundles } from '../traffic/upstream-tls.ts';
import { parseEnvoyClusterName } from '../traffic/envoy-cluster-name.ts';
import { envoyClusterSettingsOf } from '../traffic/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../traffic/envoy-cluster-settings.ts';
import { commonDataPath, dataPathOf } from '../traffic/data-path.ts';
import type { DataPathMode } from '../traffic/data-path.ts';
import { dependenciesOf, trackDependencies } from '../traffic/traffic-resources.ts';
import type { TrafficResources } from '../traffic/traffic-resources.ts';
import { resolveEnvoyCluster, mixedClusterNames } from '../traffic/resolve-route.ts';
import type { ResolvedRule } from '../traffic/resolve-route.ts';
import { revisionOf } from '../traffic/revision.ts';
import { declaredIn, gatewaysOfClass, routesOf } from './listers.ts';
import { Dependents, DependencyCache } from './dependency-cache.ts';
import type { Assignments, SourcedAssignment } from './eds/assigned.ts';
import type { UnusedOfCluster } from './eds/unresolved.ts';

/** What clusters resolve to at this moment: hooks and endpoints both read it here, so that they never disagree. */
export interface View extends Assignments {
  /** What a cluster must have; nothing where it is to be left alone. */
  needsOf(cluster: string): EnvoyClusterSettings | undefined;
  /** What gets no traffic of rules whose endpoints Envoys do not get from us, since they mix ours with others. */
  unusedElsewhere(): Iterable<UnusedOfCluster>;
  /** The revision of what the clusters of a Gateway must have; nothing where none of them is ours. */
  revisionOf(gateway: Ref<'Gateway'>): string | undefined;
  /** How many names are kept. */
  readonly size: number;
  /** Follows no more changes; what is read after it may be old. */
  close(): void;
}

/** How a view reads what is not declared. */
export type ViewSettings = {
  /** How Envoys reach the mesh where nothing is decided for their Gateway. */
  readonly dataPath: DataPathMode;
  /** What all clusters have in common, however they are made of what they need. */
  readonly shape: string;
};

/** Views what is declared; it must have the indexes of the extension server. */
export function createView(read: ReadResources, { dataPath, shape }: ViewSettings): View {
  const dependents = new Dependents();
  const trust = cachedCaBundles();
  const cached = <V extends object>(compute: (name: string, from: Sources) => V | undefined) =>
    new DependencyCache<V>((name, note) => {
      return compute(name, { read, note, declared: trackDependencies(declaredIn(read, note, trust), note) });
    }, dependents);
  const clusters = cached((cluster, { declared }) => resolveCluster(cluster, declared));
  const revisions = cached((gateway, sources) => revisionIn(gateway, sources, shape));
  const paths = cached((gateway, sources) => pathIn(gateway, sources, dataPath));
  const unsubscribe = read.subscribe(({ key }) => {
    for (const text of textsOf(key, read.get(refOf(key)))) dependents.touch(text);
  });
  return {
    find: (cluster, gateway) =>
      assignedTo(clusters.read(cluster), () => paths.read(gateway)?.mode ?? dataPath),
    follow: (cluster, gateway, follower) => {
      clusters.follow(cluster, follower);
      paths.follow(gateway, follower);
    },
    unfollow: (cluster, gateway, follower) => {
      clusters.unfollow(cluster, follower);
      paths.unfollow(gateway, follower);
    },
    needsOf: cluster =>
      (clusters.peek(cluster) ?? (mayBeMesh(read, cluster) ? clusters.read(cluster) : undefined))?.needs,
    unusedElsewhere: () =>
      mixedIn(read).flatMap(cluster => {
        const resolved = clusters.read(cluster);
        return resolved && !resolved.needs ? [{ cluster, unused: resolved.rule.unused }] : [];
      }),
    revisionOf: gateway => revisions.read(keyOf(gateway))?.revision,
    get size() {
      return clusters.size + paths.size + revisions.size;
    },
    close: unsubscribe,
  };
}

/** What the name of a cluster resolves to. */
type ResolvedCluster = { readonly rule: ResolvedRule; readonly needs: EnvoyClusterSettings | undefined };

function resolveCluster(cluster: string, declared: TrafficResources): ResolvedCluster | undefined {
  const name = parseEnvoyClusterName(cluster);
  const rule = name && resolveEnvoyCluster(declared, name);
  return rule && { rule, needs: envoyClusterSettingsOf(rule) };
}

/** Most clusters of a translation belong to others, and are recognized without recording dependencies. */
function mayBeMesh(read: ReadResources, cluster: string): boolean {
  const name = parseEnvoyClusterName(cluster);
  const route = name && read.get({ kind: name.kind, namespace: name.namespace, name: name.name });
  return route?.rules.some(({ backendRefs }) => backendRefs.some(isMeshBackend)) === true;
}

/** What a cluster is assigned by a way into the mesh; nothing where it is to be left alone. */
function assignedTo(
  resolved: ResolvedCluster | undefined,
  path: () => DataPathMode,
): SourcedAssignment | undefined {
  if (!resolved?.needs) return undefined;
  const { rule, needs } = resolved;
  const { assignment, unused } = loadAssignmentOf(rule, needs, path());
  const objects = rule.backends.map(({ index, ref: { namespace, name } }): [number, Key] => [
    index,
    keyOf({ kind: 'MeshEndpoints', namespace, name }),
  ]);
  return { assignment, unused: [...rule.unused, ...unused], objects: new Map(objects) };
}

/** The clusters of rules that mix our backends with others. */
function mixedIn(read: ReadResources): readonly string[] {
  return ROUTE_KINDS.flatMap(kind => read.list(kind)).flatMap(mixedClusterNames);
}

/** From what values are computed: each reading by `declared` is noted, and any other is to be noted. */
type Sources = {
  readonly read: ReadResources;
  readonly declared: TrafficResources;
  readonly note: (text: string) => void;
};

/** Nothing where it is as everywhere, so that only Gateways are kept for which something is decided. */
function pathIn(
  gateway: string,
  sources: Sources,
  dataPath: DataPathMode,
): { readonly mode: DataPathMode } | undefined {
  const gateways = gatewaysNamed(gateway, sources);
  if (gateways.length === 0) return undefined;
  const mode = commonDataPath(gateways.map(each => dataPathOf(sources.declared, each, dataPath)));
  return mode === dataPath ? undefined : { mode };
}

/** The Gateways that an Envoy serves: the one that it names, or all of the class that it names where they are merged. */
function gatewaysNamed(named: string, { read, note }: Sources): readonly Ref<'Gateway'>[] {
  const [first = '', name, end] = named.split('/', 3);
  if (first === '' || name === '' || end !== undefined) return [];
  if (name !== undefined) return [{ kind: 'Gateway', namespace: first, name }];
  const gateways = gatewaysOfClass(read, first);
  note(classText(first));
  for (const gateway of gateways) note(keyOf(gateway));
  return gateways;
}

function classText(name: string): string {
  return `class:${name}`;
}

function revisionIn(
  gateway: string,
  { read, declared, note }: Sources,
  shape: string,
): { readonly revision: string } | undefined {
  const ref = refOf(gateway as Key) as Ref<'Gateway'>;
  const routes = routesOf(read, ref);
  note(routesText(gateway));
  for (const route of routes) note(keyOf(refTo(route)));
  const revision = revisionOf(declared, { gateway: ref, routes, shape });
  return revision === undefined ? undefined : { revision };
}

function routesText(gateway: string): string {
  return `routes:${gateway}`;
}

/**
 * What a change touches: all that the object is found by now, and all that was computed from it before, which has noted
 * its key. So nothing need be known of what it was found by before.
 */
function textsOf(key: Key, object: Resource | undefined): readonly string[] {
  if (!object) return [key];
  const routes = 'parentRefs' in object ? gatewaysOf(object).map(routesText) : [];
  const classes = object.kind === 'Gateway' ? [classText(object.gatewayClassName)] : [];
  return [key, ...dependenciesOf(object), ...routes, ...classes];
}
