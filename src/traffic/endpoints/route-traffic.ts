import type { Kinds } from '../../api/generated/types.ts';
import { endpointsOf } from '../../api/objects/endpoints.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { refOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { gatewaysOf } from '../attachments.ts';
import { dataPathOf } from '../data-path.ts';
import type { DataPathMode } from '../data-path.ts';
import type { GatewaySettings } from '../gateway-settings.ts';
import { envoyClusterSettingsOf, settingsFor } from '../settings/envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from '../settings/envoy-cluster-settings.ts';
import { overTlsBudgetIn } from '../settings/tls-budget.ts';
import type { TlsBudgets } from '../settings/tls-budget.ts';
import { loadAssignmentOf, withheldOf } from './load-assignment.ts';
import type { EnvoyLocality } from './load-assignment.ts';
import { refusedMirrors, resolveRoute } from '../resolve-route.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import type { UnusedBackend } from '../unused.ts';

/** What the Envoys of a Gateway get for a rule. */
export type RuleTraffic = {
  readonly rule: ResolvedRule;
  /** Whether the operator alone checks its endpoints, although Envoy could. */
  readonly isHealthCheckOff: boolean;
  readonly localities: readonly EnvoyLocality[];
  /** Everything of the rule that gets no traffic. */
  readonly unused: readonly UnusedBackend[];
};

/** What the Envoys of all these Gateways get for a route. */
export type RouteTraffic = {
  readonly path: DataPathMode;
  /** Empty for a route without Gateways. */
  readonly gateways: readonly Ref<'Gateway'>[];
  /** The rules with MeshEndpoints among their backends. */
  readonly rules: readonly RuleTraffic[];
};

/** Resolves a route for each path and set of checks that its Gateways have for it, or for the default where it has no Gateway. */
export function trafficOfRoute(
  resources: TrafficResources,
  route: Route,
  defaultPath: DataPathMode,
  budgets: TlsBudgets,
): readonly RouteTraffic[] {
  return settingsOfRoute(resources, route, defaultPath).map(({ path, gateways, clusters }) => ({
    path,
    gateways,
    rules: clusters.map(cluster => trafficOfRule(cluster, path, resources, budgets)),
  }));
}

/** For each path and set of checks. */
function settingsOfRoute(
  resources: TrafficResources,
  route: Route,
  defaultPath: DataPathMode,
): readonly RouteSettings[] {
  const rules = resolveRoute(resources, route).map(rule => ({ rule, common: envoyClusterSettingsOf(rule) }));
  const settingsBy = (gateway: GatewaySettings | undefined) =>
    rules.map(({ rule, common }) => ({ rule, settings: common && settingsFor(common, gateway, rule) }));
  const alike = new Map<string, RouteSettings & { readonly gateways: Ref<'Gateway'>[] }>();
  for (const key of gatewaysOf(route, resources)) {
    const gateway = refOf(key) as Ref<'Gateway'>;
    const path = dataPathOf(resources, gateway, defaultPath);
    const clusters = settingsBy(resources.gatewaySettings(gateway));
    const id = [path, ...clusters.map(({ settings }) => settings?.isHealthCheckOff ?? false)].join(' ');
    const found = alike.get(id) ?? { path, clusters, gateways: [] };
    found.gateways.push(gateway);
    alike.set(id, found);
  }
  if (alike.size === 0) alike.set('', { path: defaultPath, clusters: settingsBy(undefined), gateways: [] });
  return [...alike.values()];
}

/** Everything that a route does not use, of all MeshEndpoints that it names; a reason may be repeated. */
export function unusedOfRoute(
  resources: TrafficResources,
  route: Route,
  defaultPath: DataPathMode,
  budgets: TlsBudgets,
): readonly UnusedBackend[] {
  const unused = settingsOfRoute(resources, route, defaultPath).flatMap(({ path, clusters }) =>
    clusters.flatMap(({ rule, settings }) => {
      const withheld = settings && withheldOf(rule, settings, path, resources);
      return unusedOfRule(rule, budgets, withheld);
    }),
  );
  return [...unused, ...refusedMirrors(route)];
}

/** Whether the status of an object decides what routes use of it: relay ports and the addresses of names are only there. */
export function isUsedByStatus(object: Kinds['MeshEndpoints']): boolean {
  return endpointsOf(object).some(
    ({ protocol, externalTarget }) => protocol === 'UDP' || externalTarget !== undefined,
  );
}

type ClusterSettings = {
  readonly rule: ResolvedRule;
  readonly settings: EnvoyClusterSettings | undefined;
};

type RouteSettings = Omit<RouteTraffic, 'rules'> & { readonly clusters: readonly ClusterSettings[] };

function trafficOfRule(
  { rule, settings }: ClusterSettings,
  path: DataPathMode,
  resources: TrafficResources,
  budgets: TlsBudgets,
): RuleTraffic {
  const result = settings && loadAssignmentOf(rule, settings, path, resources);
  return {
    rule,
    isHealthCheckOff: settings?.isHealthCheckOff ?? false,
    localities: result?.assignment.localities ?? [],
    unused: unusedOfRule(rule, budgets, result?.unused),
  };
}

function unusedOfRule(
  rule: ResolvedRule,
  budgets: TlsBudgets,
  withheld: readonly UnusedBackend[] = [],
): readonly UnusedBackend[] {
  return [...overTlsBudgetIn(rule, budgets), ...rule.unused, ...withheld];
}
