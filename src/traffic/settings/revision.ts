import { createHash } from 'node:crypto';
import type { Route } from '../../api/objects/gateway-api.ts';
import { inOrderOfKeys } from '../../api/objects/references.ts';
import type { GatewaySettings } from '../gateway-settings.ts';
import { envoyClusterSettingsOf, settingsFor } from './envoy-cluster-settings.ts';
import type { EnvoyClusterSettings } from './envoy-cluster-settings.ts';
import { closedSettingsOf, overTlsBudgetOf } from './tls-budget.ts';
import type { TlsBudgets } from './tls-budget.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import { resolveRoute } from '../resolve-route.ts';
import type { ResolvedRule } from '../resolve-route.ts';

/** The inputs of a revision. */
export type RevisionInputs = {
  readonly decided: GatewaySettings | undefined;
  /** All that attach to the Gateway. */
  readonly routes: readonly Route[];
  /** The `routeSettings` of one of them. */
  readonly settingsOf: (route: Route) => string;
  /** What all clusters have in common: how settings are encoded, and the EDS address. */
  readonly clusterEncoding: string;
};

/**
 * A hash of the settings of a Gateway and of all its mesh clusters: when it changes, Envoy Gateway must translate again, and
 * an extension server that computes another one has not read the Gateway's MeshBinding yet. Undefined where no route of the
 * Gateway has MeshEndpoints among its backends. The order of the routes does not matter.
 */
export function revisionOf({
  decided,
  routes,
  settingsOf,
  clusterEncoding,
}: RevisionInputs): string | undefined {
  const hash = createHash('sha256').update(clusterEncoding);
  let isEmpty = true;
  for (const route of inOrderOfKeys(routes)) {
    const settings = settingsOf(route);
    hash.update(settings);
    isEmpty &&= settings === '';
  }
  if (decided) hash.update(`\n${JSON.stringify(decided)}`);
  return isEmpty ? undefined : hash.digest('hex').slice(0, DIGITS);
}

const DIGITS = 32;

/** The settings of the mesh clusters of a route as one text, which is empty for a route without any. */
export function routeSettings(
  resources: TrafficResources,
  route: Route,
  decided: GatewaySettings | undefined,
  budgets: TlsBudgets,
): string {
  const rules = resolveRoute(resources, route);
  const lines = rules.map(
    rule => `\n${rule.cluster.text} ${JSON.stringify(settingsOf(rule, budgets, decided) ?? null)}`,
  );
  return lines.join('');
}

function settingsOf(
  rule: ResolvedRule,
  budgets: TlsBudgets,
  decided: GatewaySettings | undefined,
): EnvoyClusterSettings | undefined {
  const settings = envoyClusterSettingsOf(rule);
  const closed = settings && closedSettingsOf(settings);
  const used = closed && overTlsBudgetOf(rule.cluster, budgets) ? closed : settings;
  return used && settingsFor(used, decided, rule);
}
