import type { Route } from '../../api/objects/gateway-api.ts';
import { refOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { gatewaysOf } from '../../api/objects/references.ts';
import { dataPathOf } from '../data-path.ts';
import type { DataPathMode } from '../data-path.ts';
import { envoyClusterSettingsOf } from '../settings/envoy-cluster-settings.ts';
import { overTlsBudgetIn } from '../settings/tls-budget.ts';
import type { TlsBudgets } from '../settings/tls-budget.ts';
import { loadAssignmentOf } from './load-assignment.ts';
import type { EnvoyLocality } from './load-assignment.ts';
import { resolveRoute } from '../resolve-route.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import type { UnusedBackend } from '../unused.ts';

/** What Envoys with one data path get for a rule. */
export type RuleTraffic = {
  readonly rule: ResolvedRule;
  readonly localities: readonly EnvoyLocality[];
  /** Everything of the rule that gets no traffic. */
  readonly unused: readonly UnusedBackend[];
};

/** What the Envoys of some Gateways, which share a data path, get for a route. */
export type RouteTraffic = {
  readonly path: DataPathMode;
  /** Empty for a route without Gateways. */
  readonly gateways: readonly Ref<'Gateway'>[];
  /** The rules with MeshEndpoints among their backends. */
  readonly rules: readonly RuleTraffic[];
};

/** Resolves a route for each data path that its Gateways have, or for the default where it has no Gateway. */
export function trafficOfRoute(
  resources: TrafficResources,
  route: Route,
  defaultPath: DataPathMode,
  budgets: TlsBudgets,
): readonly RouteTraffic[] {
  const rules = resolveRoute(resources, route);
  const byPath = new Map<DataPathMode, Ref<'Gateway'>[]>();
  for (const key of new Set(gatewaysOf(route))) {
    const gateway = refOf(key) as Ref<'Gateway'>;
    const path = dataPathOf(resources, gateway, defaultPath);
    byPath.set(path, [...(byPath.get(path) ?? []), gateway]);
  }
  if (byPath.size === 0) byPath.set(defaultPath, []);
  return [...byPath].map(([path, gateways]) => ({
    path,
    gateways,
    rules: rules.map(rule => trafficOfRule(rule, path, resources, budgets)),
  }));
}

/** Everything that a route does not use, of all MeshEndpoints that it names; a reason may be repeated. */
export function unusedOfRoute(
  resources: TrafficResources,
  route: Route,
  defaultPath: DataPathMode,
  budgets: TlsBudgets,
): readonly UnusedBackend[] {
  const rules = trafficOfRoute(resources, route, defaultPath, budgets).flatMap(each => each.rules);
  return rules.flatMap(({ unused }) => unused);
}

function trafficOfRule(
  rule: ResolvedRule,
  path: DataPathMode,
  resources: TrafficResources,
  budgets: TlsBudgets,
): RuleTraffic {
  const settings = envoyClusterSettingsOf(rule);
  const result = settings && loadAssignmentOf(rule, settings, path, resources);
  return {
    rule,
    localities: result?.assignment.localities ?? [],
    unused: [...overTlsBudgetIn(rule, budgets), ...rule.unused, ...(result?.unused ?? [])],
  };
}
