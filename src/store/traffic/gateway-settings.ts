import { isEqual } from '../../api/json.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref, ResourceKind, RouteKind } from '../../api/key.ts';
import { gatewaysOf } from '../../traffic/attachments.ts';
import {
  checkedBackends,
  checkedByOperator,
  clustersOfBackends,
  crowdedBackends,
  decisionOf,
} from '../../traffic/endpoints/operator-checks.ts';
import type { Decision } from '../../traffic/endpoints/operator-checks.ts';
import { parseEnvoyClusterName } from '../../traffic/envoy-cluster-name.ts';
import { gatewaySettings, sharedSettings, withOperatorChecks } from '../../traffic/gateway-settings.ts';
import type { GatewaySettings } from '../../traffic/gateway-settings.ts';
import { resolveRoute } from '../../traffic/resolve-route.ts';
import { routeSettings } from '../../traffic/settings/revision.ts';
import type { TlsBudgets } from '../../traffic/settings/tls-budget.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';
import { Derived } from '../derived.ts';
import type { ReadObjects } from '../resources.ts';
import type { TrackedRead, Tracking } from '../tracking.ts';
import { attachmentKinds, attachmentResourcesFrom } from './attachments.ts';
import type { AttachedRoutes } from './attachments.ts';
import { bindingOf, meshGatewaysByGateway } from './resources.ts';

/** By the key of a Gateway; read where users write them, or where the operator publishes them. */
export function gatewaySettingsFrom(
  tracking: Tracking,
  source: 'MeshGateway' | 'MeshBinding',
  crowded: Derived<ReturnType<typeof crowdedBackends>>,
): Derived<GatewaySettings | undefined> {
  // Most changes of status decide nothing else about a backend.
  const decisions = new Derived<Decision>(tracking, ['MeshEndpoints'], (backend, read) =>
    decisionOf(backend, ref => read.get(ref)),
  );
  // Everything at a Gateway depends on them, and each change of a route may be one of its crowded backends.
  return new Derived(
    tracking,
    source === 'MeshBinding' ? ['MeshBinding'] : ['MeshBinding', 'MeshGateway'],
    (key, read) => {
      const gateway = refOf(key as Key) as Ref<'Gateway'>;
      const written = bindingOf(gateway, read.exceptStatus)?.spec.settings;
      if (source === 'MeshBinding') return written;
      const given = gatewaySettings(read.exceptStatus.find(meshGatewaysByGateway, key));
      const before = written?.checkedByOperator ?? [];
      return withOperatorChecks(given, () =>
        checkedByOperator(read.value(crowded, key), before, backend => read.value(decisions, backend)),
      );
    },
    isEqual,
    { isVerified: true },
  );
}

/** What a route adds to its Gateways, from one resolution of it: that takes most of the time. */
export type RouteSettings = {
  /** The settings of its mesh clusters, as they are in revisions. */
  readonly text: string;
  /** Its `checkedBackends`. */
  readonly checked: readonly string[];
};

/** By the key of a route. */
export function routeSettingsFrom(
  tracking: Tracking,
  reads: readonly ResourceKind[],
  settingsResources: (read: TrackedRead) => TrafficResources,
  budgetsOf: (read: TrackedRead) => TlsBudgets,
): Derived<RouteSettings> {
  return new Derived<RouteSettings>(
    tracking,
    reads,
    (key, read) => {
      const route = read.exceptStatus.get(refOf(key as Key) as Ref<RouteKind>);
      if (!route) return { text: '', checked: NONE };
      const rules = resolveRoute(settingsResources(read), route);
      const checked = checkedBackends(rules);
      return { text: routeSettings(rules, budgetsOf(read)), checked: checked.length > 0 ? checked : NONE };
    },
    isEqual,
  );
}

/** One value, so that most routes share it. */
const NONE: readonly string[] = [];

/**
 * By the key of a Gateway: its backends in many clusters. Each route is counted by itself, so that a change of one resolves no
 * other.
 */
export function crowdedByGateway(
  settingsOfRoutes: Derived<RouteSettings>,
  attachedRoutes: AttachedRoutes,
): Derived<ReturnType<typeof crowdedBackends>> {
  return attachedRoutes.combined({
    reads: [],
    ofGroup: (routes, read) =>
      clustersOfBackends(routes.map(route => read.value(settingsOfRoutes, route).checked)),
    ofGateway: crowdedBackends,
  });
}

/** By `envoyAndRoute`, from those by the key of a Gateway. */
export function settingsInEnvoyFrom(
  tracking: Tracking,
  settings: Derived<GatewaySettings | undefined>,
): Derived<GatewaySettings | undefined> {
  return new Derived(
    tracking,
    attachmentKinds,
    (name, read) =>
      sharedSettings(gatewaysInEnvoy(name, read.exceptStatus), each => read.value(settings, keyOf(each))),
    isEqual,
  );
}

/**
 * Names an Envoy and the route of one of its clusters. An Envoy of one Gateway has the same settings for all routes, so that
 * it is named by its `node.cluster`, `namespace/name`, alone; that of merged Gateways is a GatewayClass.
 */
export function envoyAndRoute(nodeCluster: string, cluster: string): string {
  const name = nodeCluster.includes('/') ? undefined : parseEnvoyClusterName(cluster);
  return name ? `${nodeCluster} ${keyOf(name)}` : nodeCluster;
}

/** The Gateways of an Envoy that have the route, by `envoyAndRoute`. */
function gatewaysInEnvoy(envoyAndRoute: string, read: ReadObjects): readonly Ref<'Gateway'>[] {
  const [nodeCluster = '', route] = envoyAndRoute.split(' ', 2);
  if (route === undefined) {
    const [namespace = '', name = '', end] = nodeCluster.split('/', 3);
    return namespace === '' || name === '' || end !== undefined ? [] : [{ kind: 'Gateway', namespace, name }];
  }
  const gateways = gatewaysOfRoute(read, refOf(route as Key) as Ref<RouteKind>);
  return gateways.filter(ref => read.get(ref)?.gatewayClassName === nodeCluster);
}

/** The Gateways that a route attaches to, also by their ListenerSets. */
export function gatewaysOfRoute(read: ReadObjects, ref: Ref<RouteKind>): readonly Ref<'Gateway'>[] {
  const route = read.get(ref);
  const keys = route ? gatewaysOf(route, attachmentResourcesFrom(read)) : [];
  return keys.map(key => refOf(key) as Ref<'Gateway'>);
}
