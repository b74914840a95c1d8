import { isEqual } from '../../api/json.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, RouteKind } from '../../api/key.ts';
import { gatewaysOf, refTo } from '../../api/objects/references.ts';
import { caRefIn, caRefText } from '../../api/trust.ts';
import type { TrustedCa } from '../../api/trust.ts';
import { DEFAULT_GUARD } from '../../traffic/address-guard.ts';
import type { AddressGuard } from '../../traffic/address-guard.ts';
import type { DataPathMode } from '../../traffic/data-path.ts';
import { unusedOfRoute } from '../../traffic/endpoints/route-traffic.ts';
import {
  checkedBackends,
  checkedByOperator,
  crowdedBackends,
} from '../../traffic/endpoints/operator-checks.ts';
import { gatewaySettings, sharedSettings, withOperatorChecks } from '../../traffic/gateway-settings.ts';
import type { GatewaySettings } from '../../traffic/gateway-settings.ts';
import { parseEnvoyClusterName } from '../../traffic/envoy-cluster-name.ts';
import { resolveEnvoyCluster } from '../../traffic/resolve-route.ts';
import type { ResolvedRule } from '../../traffic/resolve-route.ts';
import { envoyClusterSettingsOf } from '../../traffic/settings/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../../traffic/settings/envoy-cluster-settings.ts';
import { revisionOf } from '../../traffic/settings/revision.ts';
import { closedSettingsOf, overTlsBudget } from '../../traffic/settings/tls-budget.ts';
import type { TlsBudgets } from '../../traffic/settings/tls-budget.ts';
import type { Relay, TrafficResources } from '../../traffic/traffic-resources.ts';
import { cachedTrust } from '../../traffic/trusted-ca.ts';
import type { UnusedBackend } from '../../traffic/unused.ts';
import { cachedCaBundles } from '../../traffic/upstream-tls.ts';
import type { ReadCaBundle } from '../../traffic/upstream-tls.ts';
import { Derived } from '../derived.ts';
import type { ReadObjects } from '../resources.ts';
import type { TrackedRead, Tracking } from '../tracking.ts';
import {
  bindingOf,
  caOf,
  gatewaysOfClass,
  meshGatewaysByGateway,
  routesOf,
  trafficResourcesFrom,
} from './resources.ts';

/** What a cluster of Envoy resolves to. */
export type ResolvedCluster = {
  readonly rule: ResolvedRule;
  readonly settings: EnvoyClusterSettings | undefined;
  /** Those without TLS, for a rule that the budget of its namespace has no room for. */
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
  /** The namespace of the mesh pods; undefined where there are none, or no EndpointSlices are read. */
  readonly podNamespace?: string | undefined;
  /** The namespace of the ConfigMap `mesh-trust`; undefined where the ConfigMaps of users are read themselves. */
  readonly trustNamespace?: string | undefined;
  readonly guard?: AddressGuard | undefined;
};

/** What is derived from the objects that traffic depends on, once for all that use it, so that they agree. */
export type TrafficValues = {
  /** The objects, read through a run that records it. */
  readonly resources: (read: TrackedRead) => TrafficResources;
  /** The same, for what does not depend on any status. */
  readonly settingsResources: (read: TrackedRead) => TrafficResources;
  /** By the name of a cluster; undefined if no mesh backend has it. */
  readonly clusters: Derived<ResolvedCluster | undefined>;
  /** The clusters of a namespace whose TLS settings its share has no room for. */
  readonly overTlsBudget: Derived<ReadonlySet<string>>;
  /** By the key of a Gateway: the revision of the settings of its clusters; undefined if none has a mesh backend. */
  readonly revisions: Derived<string | undefined>;
  /** By the key of a Gateway: its settings. */
  readonly settings: Derived<GatewaySettings | undefined>;
  /** By `envoyAndRoute`: the settings for the clusters of a route in an Envoy. */
  readonly settingsInEnvoy: Derived<GatewaySettings | undefined>;
  /** By the key of a route: everything that it does not use, of all MeshEndpoints that it names; a reason may be repeated. */
  readonly unused: Derived<readonly UnusedBackend[]>;
  readonly guard: AddressGuard;
};

/** Derives what traffic needs from objects with the `trafficIndexes`. */
export function trafficValues(tracking: Tracking, options: TrafficOptions): TrafficValues {
  const { dataPath, clusterEncoding, podNamespace, guard = DEFAULT_GUARD, readsBackends = true } = options;
  const caBundle = cachedCaBundles();
  const trust = trustedCas(tracking, options.trustNamespace, caBundle);
  const settings: Derived<GatewaySettings | undefined> = new Derived(
    tracking,
    (key, read) => {
      const gateway = refOf(key as Key) as Ref<'Gateway'>;
      const written = bindingOf(gateway, read.exceptStatus)?.spec.settings;
      if (options.settingsFrom === 'MeshBinding') return written;
      const given = gatewaySettings(read.exceptStatus.find(meshGatewaysByGateway, key));
      const before = written?.checkedByOperator ?? [];
      return withOperatorChecks(given, () =>
        checkedByOperator(read.value(crowded, key), before, ref => read.get(ref)),
      );
    },
    isEqual,
  );
  const resourcesOf = (read: TrackedRead, objects: ReadObjects) =>
    trafficResourcesFrom(objects, {
      ...{ readsBackends, podNamespace, guard, caBundle },
      trusted: ref => read.value(trust, caRefText(ref)),
      gatewaySettings: gateway => read.value(settings, keyOf(gateway)),
    });
  const resources = (read: TrackedRead) => resourcesOf(read, read);
  const settingsResources = (read: TrackedRead) => resourcesOf(read, read.exceptStatus);
  const over = new Derived<ReadonlySet<string>>(
    tracking,
    (namespace, read) => overTlsBudget(settingsResources(read), namespace),
    (one, other) => one === other || isEqual([...one], [...other]),
  );
  const budgetsOf =
    (read: TrackedRead): TlsBudgets =>
    namespace =>
      read.value(over, namespace);
  const clusters = new Derived(tracking, (name, read) => resolveCluster(name, resources(read)));
  const revisions = new Derived(tracking, (key, read) => {
    const gateway = refOf(key as Key) as Ref<'Gateway'>;
    const routes = routesOf(read.exceptStatus, gateway);
    return revisionOf(settingsResources(read), {
      gateway,
      routes,
      clusterEncoding,
      budgets: budgetsOf(read),
    });
  });
  const crowded = crowdedByGateway(tracking, settingsResources);
  const settingsInEnvoy = new Derived(
    tracking,
    (name, read) =>
      sharedSettings(gatewaysInEnvoy(name, read.exceptStatus), each => read.value(settings, keyOf(each))),
    isEqual,
  );
  const unused = new Derived<readonly UnusedBackend[]>(
    tracking,
    (key, read) => {
      const route = read.exceptStatus.get(refOf(key as Key) as Ref<RouteKind>);
      return route ? unusedOfRoute(resources(read), route, dataPath, budgetsOf(read)) : [];
    },
    isEqual,
  );
  return {
    ...{ resources, settingsResources, clusters, overTlsBudget: over, revisions, unused, guard },
    ...{ settings, settingsInEnvoy },
  };
}

/** By the key of a Gateway; each route is counted by itself, so that a change of one resolves no other. */
function crowdedByGateway(
  tracking: Tracking,
  settingsResources: TrafficValues['settingsResources'],
): Derived<ReturnType<typeof crowdedBackends>> {
  const checked = new Derived<readonly string[]>(
    tracking,
    (key, read) => {
      const route = read.exceptStatus.get(refOf(key as Key) as Ref<RouteKind>);
      return route ? checkedBackends(settingsResources(read), route) : NONE;
    },
    isEqual,
  );
  return new Derived<ReturnType<typeof crowdedBackends>>(
    tracking,
    (key, read) => {
      const routes = routesOf(read.exceptStatus, refOf(key as Key) as Ref<'Gateway'>);
      return crowdedBackends(routes.map(route => read.value(checked, keyOf(refTo(route)))));
    },
    isEqual,
  );
}

/** One value, so that most routes share it. */
const NONE: readonly string[] = [];

/** By `caRefText`. What is published for all references is in one object, which changes with any of them. */
function trustedCas(
  tracking: Tracking,
  trustNamespace: string | undefined,
  caBundle: ReadCaBundle,
): Derived<TrustedCa> {
  const publishedTrust = cachedTrust();
  return new Derived<TrustedCa>(
    tracking,
    (text, read) => caOf(caRefIn(text), read.exceptStatus, { trustNamespace, publishedTrust, caBundle }),
    isEqual,
  );
}

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

/**
 * Names an Envoy and the route of one of its clusters. An Envoy of one Gateway has the same settings for all routes, so that
 * it is named by its `node.cluster`, `namespace/name`, alone; that of merged Gateways is a GatewayClass.
 */
export function envoyAndRoute(nodeCluster: string, cluster: string): string {
  const name = nodeCluster.includes('/') ? undefined : parseEnvoyClusterName(cluster);
  return name
    ? `${nodeCluster} ${keyOf({ kind: name.kind, namespace: name.namespace, name: name.name })}`
    : nodeCluster;
}

/** The Gateways of an Envoy that have the route, by `envoyAndRoute`. */
function gatewaysInEnvoy(envoyAndRoute: string, read: ReadObjects): readonly Ref<'Gateway'>[] {
  const [nodeCluster = '', route] = envoyAndRoute.split(' ', 2);
  if (route === undefined) {
    const [namespace = '', name = '', end] = nodeCluster.split('/', 3);
    return namespace === '' || name === '' || end !== undefined ? [] : [{ kind: 'Gateway', namespace, name }];
  }
  const attached = read.get(refOf(route as Key) as Ref<RouteKind>);
  const keys = new Set(attached && gatewaysOf(attached, { listenerSet: ref => read.get(ref) }));
  return gatewaysOfClass(read, nodeCluster).filter(gateway => keys.has(keyOf(gateway)));
}
