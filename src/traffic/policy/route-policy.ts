import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import type { Kinds, MeshEndpoint, RouteTarget } from '../../api/generated/types.ts';
import { keyOf } from '../../api/key.ts';
import type { Key } from '../../api/key.ts';
import { selects } from '../../api/objects/label-selector.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Problem } from '../../api/problem.ts';
import type { EnvoyClusterName } from '../envoy-cluster-name.ts';
import type { TrafficResources } from '../traffic-resources.ts';

type MeshRoutePolicy = Kinds['MeshRoutePolicy'];

/** The keys of the routes that a MeshRoutePolicy targets, wholly or by a rule. */
export function targetedRoutes({ metadata: { namespace = '' }, spec }: MeshRoutePolicy): readonly Key[] {
  return spec.targetRefs.map(({ kind, name }) => keyOf({ kind, namespace, name }));
}

/** The policy of a rule: the oldest that names the rule, else the oldest that names the route alone. */
export function policyOf(
  resources: Pick<TrafficResources, 'routePolicies'>,
  route: Route,
  rule: EnvoyClusterName['rule'],
): MeshRoutePolicy | undefined {
  const policies = resources.routePolicies(refTo(route));
  if (policies.length === 0) return undefined;
  const name = nameOfRule(route, rule);
  const ofRule = name === undefined ? undefined : oldestOf(claiming(policies, targetOf(route, name)));
  return ofRule ?? oldestOf(claiming(policies, targetOf(route)));
}

/** The name of a rule. All rules of a TLSRoute, TCPRoute or UDPRoute are one cluster, so that only one alone can be named. */
export function nameOfRule({ rules }: Route, rule: EnvoyClusterName['rule']): string | undefined {
  if (rule !== 'only') return rules[rule]?.name;
  return rules.length === 1 ? rules[0]?.name : undefined;
}

/** The policies that have exactly this target: those that conflict, of which the oldest counts. */
export function claiming(
  policies: readonly MeshRoutePolicy[],
  { kind, name, sectionName }: Omit<RouteTarget, 'group'>,
): readonly MeshRoutePolicy[] {
  return policies.filter(({ spec }) =>
    spec.targetRefs.some(
      each => each.kind === kind && each.name === name && each.sectionName === sectionName,
    ),
  );
}

function targetOf({ kind, metadata: { name } }: Route, sectionName?: string): RouteTarget {
  return { group: GATEWAY_GROUP, kind, name, ...(sectionName !== undefined && { sectionName }) };
}

/** Whether a policy lets a rule use an endpoint of a MeshEndpoints. */
export function isRequired(
  policy: MeshRoutePolicy | undefined,
  { metadata = {} }: Pick<MeshEndpoint, 'metadata'>,
): boolean {
  const require = policy?.spec.endpoints?.require;
  return require === undefined || selects(require, metadata);
}

/*
 * The order in which Envoy uses the endpoints of a rule, by three numbers. Endpoints that have all three in common share
 * traffic by their weights:
 *
 *   1  the level of the backend
 *   2  the first entry of endpoints.prefer that an endpoint matches; after the last one where it matches none
 *   3  its own priority; that of a fallback Backend is 1
 */

/** Where endpoints come in the order: those with the lowest number first. */
export function rankOf(
  policy: MeshRoutePolicy | undefined,
  { level, priority, metadata }: Pick<MeshEndpoint, 'priority' | 'metadata'> & { readonly level: number },
): number {
  const prefer = policy?.spec.endpoints?.prefer ?? [];
  const found = prefer.findIndex(selector => metadata !== undefined && selects(selector, metadata));
  const preference = found === -1 ? prefer.length : found;
  return (level * (prefer.length + 1) + preference) * PRIORITIES + priority;
}

/** An endpoint has a priority of 0 to 9. */
const PRIORITIES = 10;

/** The most priorities of a rule. */
export const MAX_PRIORITIES = 16;

/**
 * The factor by which Envoy multiplies the share of healthy endpoints of a priority, in percent: the priority gets all of its
 * traffic while the product is 100 or more. Undefined for Envoy's own, 140.
 */
export function overprovisioningFactor(policy: MeshRoutePolicy | undefined): number | undefined {
  const percent = policy?.spec.failover?.healthyPercent;
  return percent === undefined ? undefined : Math.ceil(10_000 / percent);
}

/** Why a policy does not do for a rule what it was written for. */
export type PolicyProblem = Problem<
  | 'NoMeshEndpoints'
  | 'NoMatchingEndpoints'
  | 'TooManyPriorities'
  | 'BackendNotFound'
  | 'RefNotPermitted'
  | 'PortNotFound'
  | 'TLSNotSupported'
  | 'ProtocolConflict'
>;
