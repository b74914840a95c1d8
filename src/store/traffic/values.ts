import { isEqual } from '../../api/json.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { BACKEND_KINDS, keyOf, refOf, ROUTE_KINDS } from '../../api/key.ts';
import type { Key, Ref, ResourceKind, RouteKind } from '../../api/key.ts';
import { caRefIn, caRefText } from '../../api/trust.ts';
import type { TrustedCa } from '../../api/trust.ts';
import { routingKinds, trafficKinds } from '../../traffic/access.ts';
import { DEFAULT_GUARD } from '../../traffic/address-guard.ts';
import type { AddressGuard } from '../../traffic/address-guard.ts';
import type { DataPathMode } from '../../traffic/data-path.ts';
import type { crowdedBackends } from '../../traffic/endpoints/operator-checks.ts';
import { isUsedByStatus, unusedOfRoute } from '../../traffic/endpoints/route-traffic.ts';
import type { GatewaySettings } from '../../traffic/gateway-settings.ts';
import { parseEnvoyClusterName } from '../../traffic/envoy-cluster-name.ts';
import { resolveEnvoyCluster } from '../../traffic/resolve-route.ts';
import type { ResolvedRule } from '../../traffic/resolve-route.ts';
import { envoyClusterSettingsOf } from '../../traffic/settings/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../../traffic/settings/envoy-cluster-settings.ts';
import { haveSameHash, revisionOf, revisionPart } from '../../traffic/settings/revision.ts';
import type { Revision, RevisionPart } from '../../traffic/settings/revision.ts';
import {
  closedSettingsOf,
  overTlsBudget,
  overTlsTotal,
  tlsNeedsOf,
} from '../../traffic/settings/tls-budget.ts';
import type { TlsBudget, TlsBudgets, TlsNeed } from '../../traffic/settings/tls-budget.ts';
import type { Relay, TrafficResources } from '../../traffic/traffic-resources.ts';
import { cachedTrust } from '../../traffic/trusted-ca.ts';
import type { UnusedBackend } from '../../traffic/unused.ts';
import { cachedCaBundles } from '../../traffic/upstream-tls.ts';
import type { ReadCaBundle } from '../../traffic/upstream-tls.ts';
import { Derived } from '../derived.ts';
import type { ReadObjects } from '../resources.ts';
import type { TrackedRead, Tracking } from '../tracking.ts';
import { attachedRoutesFrom } from './attachments.ts';
import type { AttachedRoutes } from './attachments.ts';
import {
  crowdedByGateway,
  gatewaySettingsFrom,
  routeSettingsFrom,
  settingsInEnvoyFrom,
} from './gateway-settings.ts';
import type { RouteSettings } from './gateway-settings.ts';
import {
  bindingOf,
  caOf,
  namespacesOfMeshRoutes,
  policiesByRoute,
  tailnetsByDomain,
  trafficResourcesFrom,
} from './resources.ts';
import { serviceGatewaysFrom } from './service-gateways.ts';
import { Translations } from './translations.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** What a cluster of Envoy resolves to. */
export type ResolvedCluster = {
  readonly rule: ResolvedRule;
  readonly settings: EnvoyClusterSettings | undefined;
  /** Those without TLS, for a rule that a budget has no room for. */
  readonly closed: EnvoyClusterSettings | undefined;
  /** By MeshTailnet; read for UDP only. */
  readonly relays: ReadonlyMap<string, readonly Relay[] | undefined>;
};

export type TrafficOptions = {
  /** The data path of Gateways whose settings have none. */
  readonly dataPath: DataPathMode;
  /** Where the settings of Gateways are read: where users write them, or where the operator publishes them. */
  readonly settingsFrom: 'MeshGateway' | 'MeshBinding';
  /** How the settings of clusters are encoded, and where Envoy reaches EDS: a part of each revision. */
  readonly clusterEncoding: string;
  /** Whether Services, EndpointSlices and Backends are read. */
  readonly readsBackends?: boolean;
  /** Whether Services are read; by default where all backends are. */
  readonly readsServices?: boolean;
  /** The namespace of the mesh pods; undefined where there are none, or no EndpointSlices are read. */
  readonly podNamespace?: string | undefined;
  /** The namespace of the ConfigMap `mesh-trust`; undefined where the ConfigMaps of users are read themselves. */
  readonly trustNamespace?: string | undefined;
  readonly guard?: AddressGuard | undefined;
};

/** What is derived from the objects that traffic depends on, once for all that use it, so that they agree. */
export type TrafficValues = {
  /** The kinds of objects that are read through `resources` and `settingsResources`. */
  readonly reads: readonly ResourceKind[];
  /** The objects, read through a run that records it. */
  readonly resources: (read: TrackedRead) => TrafficResources;
  /** The same, for what does not depend on any status. */
  readonly settingsResources: (read: TrackedRead) => TrafficResources;
  readonly attachedRoutes: AttachedRoutes;
  /** By the name of a cluster; undefined if no mesh backend has it. */
  readonly clusters: Derived<ResolvedCluster | undefined>;
  /** By namespace: the clusters of its rules whose TLS settings are left out, and why. */
  readonly overTlsBudget: Derived<ReadonlyMap<string, TlsBudget>>;
  /** By the key of a Gateway: the revision of the settings of its clusters; undefined if none has a mesh backend. */
  readonly revisions: Derived<Revision | undefined>;
  /** By the key of a route. */
  readonly settingsOfRoutes: Derived<RouteSettings>;
  /** By the key of a Gateway: the last revision that Envoy Gateway has reported as translated. */
  readonly translated: Derived<Revision | undefined>;
  readonly translations: Translations;
  /** By the key of a Gateway: its settings. */
  readonly settings: Derived<GatewaySettings | undefined>;
  /** By the key of a Gateway: its backends in many clusters, with their number. */
  readonly crowded: Derived<ReturnType<typeof crowdedBackends>>;
  /** By `envoyAndRoute`: the settings for the clusters of a route in an Envoy. */
  readonly settingsInEnvoy: Derived<GatewaySettings | undefined>;
  /** By the key of a MeshEndpoints: the key of the MeshGateway that decides about its VIP services. */
  readonly serviceGateways: Derived<Key | undefined>;
  /** By the key of a route: everything that it does not use, of all MeshEndpoints that it names; a reason may be repeated. */
  readonly unused: Derived<readonly UnusedBackend[]>;
  readonly guard: AddressGuard;
};

/** Derives what traffic needs from objects with the `trafficIndexes`. */
export function trafficValues(tracking: Tracking, options: TrafficOptions): TrafficValues {
  const { dataPath, clusterEncoding, podNamespace, guard = DEFAULT_GUARD, readsBackends = true } = options;
  const { readsServices = readsBackends } = options;
  const reads: readonly ResourceKind[] = [
    ...trafficKinds,
    ...(readsBackends ? [...BACKEND_KINDS, ...routingKinds] : []),
    ...(readsServices ? (['Service'] as const) : []),
    ...(podNamespace === undefined ? [] : (['EndpointSlice'] as const)),
  ];
  const caBundle = cachedCaBundles();
  const trust = trustedCas(tracking, options.trustNamespace, caBundle);
  const resourcesOf = (read: TrackedRead, objects: ReadObjects) =>
    trafficResourcesFrom(objects, {
      readsBackends,
      readsServices,
      podNamespace,
      guard,
      caBundle,
      trusted: ref => read.value(trust, caRefText(ref)),
      gatewaySettings: gateway => read.value(settings, keyOf(gateway)),
      // No status of a policy decides about traffic.
      routePolicies: route => read.exceptStatus.find(policiesByRoute, keyOf(route)),
    });
  const tailnets = new Derived<readonly MeshTailnet[]>(
    tracking,
    ['MeshTailnet'],
    (domain, read) => read.find(tailnetsByDomain, domain),
    areSameToTraffic,
  );
  const resources = (read: TrackedRead): TrafficResources => ({
    ...resourcesOf(read, read),
    tailnets: domain => read.value(tailnets, domain),
  });
  const settingsResources = (read: TrackedRead) => resourcesOf(read, read.exceptStatus);
  const attachedRoutes = attachedRoutesFrom(tracking);
  const over = overTlsBudgets(tracking, reads, settingsResources);
  const budgetsOf =
    (read: TrackedRead): TlsBudgets =>
    namespace =>
      read.value(over, namespace);
  const settingsOfRoutes = routeSettingsFrom(tracking, reads, settingsResources, budgetsOf);
  const crowded = crowdedByGateway(settingsOfRoutes, attachedRoutes);
  const settings: TrafficValues['settings'] = gatewaySettingsFrom(tracking, options.settingsFrom, crowded);
  const clusters = new Derived(tracking, reads, (name, read) => resolveCluster(name, resources(read)));
  const revisions = attachedRoutes.combined<RevisionPart | undefined, Revision | undefined>({
    reads: [],
    ofGroup: (routes, read) => revisionPart(routes.map(key => [key, read.value(settingsOfRoutes, key).text])),
    ofGateway: (parts, key, read) =>
      revisionOf(
        parts.filter(part => part !== undefined),
        { decided: read.value(settings, key), clusterEncoding },
      ),
    isSamePart: haveSameHash,
    isSame: haveSameHash,
  });
  const translations = new Translations();
  return {
    reads,
    resources,
    settingsResources,
    attachedRoutes,
    clusters,
    overTlsBudget: over,
    revisions,
    settingsOfRoutes,
    translated: translatedFrom(tracking, revisions, translations),
    translations,
    unused: unusedFrom(tracking, dataPath, { reads, resources, budgetsOf }),
    guard,
    settings,
    crowded,
    settingsInEnvoy: settingsInEnvoyFrom(tracking, settings),
    serviceGateways: serviceGatewaysFrom(tracking, reads, settingsResources),
  };
}

function unusedFrom(
  tracking: Tracking,
  dataPath: DataPathMode,
  {
    reads,
    resources,
    budgetsOf,
  }: Pick<TrafficValues, 'reads' | 'resources'> & { readonly budgetsOf: (read: TrackedRead) => TlsBudgets },
): TrafficValues['unused'] {
  return new Derived<readonly UnusedBackend[]>(
    tracking,
    reads,
    (key, read) => {
      const route = read.exceptStatus.get(refOf(key as Key) as Ref<RouteKind>);
      if (!route) return [];
      const traffic = resources(read);
      // Most statuses decide nothing about it: each is written after it was read for the first time.
      const meshEndpoints: TrafficResources['meshEndpoints'] = ref => {
        const object = read.exceptStatus.get(ref);
        return object && isUsedByStatus(object) ? traffic.meshEndpoints(ref) : object;
      };
      return unusedOfRoute({ ...traffic, meshEndpoints }, route, dataPath, budgetsOf(read));
    },
    isEqual,
  );
}

/**
 * Whether nothing differs but what traffic does not depend on: counts of devices, times and the credential. These change with
 * many lists of devices, and all objects of a tailnet depend on it.
 */
function areSameToTraffic(some: readonly MeshTailnet[], others: readonly MeshTailnet[]): boolean {
  return isEqual(some.map(partsForTraffic), others.map(partsForTraffic));
}

function partsForTraffic({ metadata, spec, status }: MeshTailnet): object {
  const { resourceVersion: _, ...identity } = metadata;
  return { identity, spec, conditions: status?.conditions, pool: status?.pool };
}

/** By namespace. A change of another one's routes is one of this only where all have no room together. */
function overTlsBudgets(
  tracking: Tracking,
  reads: readonly ResourceKind[],
  resourcesOf: (read: TrackedRead) => TrafficResources,
): TrafficValues['overTlsBudget'] {
  const needs = new Derived<readonly TlsNeed[]>(
    tracking,
    reads,
    (namespace, read) => tlsNeedsOf(resourcesOf(read), namespace),
    isEqual,
  );
  // Everything with TLS depends on it.
  const total = new Derived<ReadonlySet<string>>(
    tracking,
    ROUTE_KINDS,
    (_all, read) => {
      const namespaces = namespacesOfMeshRoutes(read.exceptStatus);
      return overTlsTotal(new Map([...namespaces].map(name => [name, read.value(needs, name)])));
    },
    (one, other) => isEqual([...one], [...other]),
    { isVerified: true },
  );
  return new Derived(
    tracking,
    [],
    (namespace, read) => overTlsBudget(read.value(needs, namespace), read.value(total, 'all')),
    (one, other) => one === other || isEqual([...one], [...other]),
  );
}

/** By `caRefText`. What is published for all references is in one object, which changes with any of them. */
function trustedCas(
  tracking: Tracking,
  trustNamespace: string | undefined,
  caBundle: ReadCaBundle,
): Derived<TrustedCa> {
  const publishedTrust = cachedTrust();
  return new Derived<TrustedCa>(
    tracking,
    ['ConfigMap'],
    (text, read) => caOf(caRefIn(text), read.exceptStatus, { trustNamespace, publishedTrust, caBundle }),
    isEqual,
  );
}

function resolveCluster(cluster: string, resources: TrafficResources): ResolvedCluster | undefined {
  const name = parseEnvoyClusterName(cluster);
  const rule = name && resolveEnvoyCluster(resources, name);
  const settings = rule && !rule.shares?.isApart ? envoyClusterSettingsOf(rule) : undefined;
  const closed = settings && closedSettingsOf(settings);
  return rule && { rule, settings, closed, relays: relaysOf(rule, resources) };
}

/** It depends on a MeshBinding alone: one that gets the present revision is written then. */
function translatedFrom(
  tracking: Tracking,
  revisions: TrafficValues['revisions'],
  translations: Translations,
): TrafficValues['translated'] {
  return new Derived(
    tracking,
    ['MeshBinding'],
    (key, read) => {
      const gateway = refOf(key as Key) as Ref<'Gateway'>;
      const binding = bindingOf(gateway, read);
      return binding && translations.last(gateway, binding, revisions.read(key));
    },
    haveSameHash,
  );
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
