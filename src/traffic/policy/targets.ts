import type { Kinds, RouteTarget } from '../../api/generated/types.ts';
import { isOverHttp } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Problem, Why } from '../../api/problem.ts';
import { meshRulesOf, resolveEnvoyCluster, rulesOf } from '../resolve-route.ts';
import type { ResolvedRule } from '../resolve-route.ts';
import type { TrafficResources } from '../traffic-resources.ts';
import { problemsOfRule } from './problems.ts';
import { claiming, nameOfRule, policyOf } from './route-policy.ts';
import type { PolicyProblem } from './route-policy.ts';

type MeshRoutePolicy = Kinds['MeshRoutePolicy'];

/** A target of a MeshRoutePolicy, and what became of it. */
export type ResolvedTarget = {
  readonly target: RouteTarget;
  /** The policy that applies instead of this one; undefined where this one does. */
  readonly decidedBy: string | undefined;
  /** What of it does not exist. */
  readonly missing?: 'route' | 'rule';
  /** The route, if the target exists, and its rules with MeshEndpoints that this policy applies to. */
  readonly route?: Route;
  readonly rules?: readonly ResolvedRule[];
};

/** Resolves a target of a MeshRoutePolicy. */
export function resolveTarget(
  { metadata: { namespace = '', name: own } }: MeshRoutePolicy,
  target: RouteTarget,
  resources: TrafficResources,
): ResolvedTarget {
  const { kind, name, sectionName } = target;
  const ref = { kind, namespace, name };
  const oldest = oldestOf(claiming(resources.routePolicies(ref), target))?.metadata.name;
  const claimedBy = oldest === own ? undefined : oldest;
  const route = resources.route(ref);
  if (!route) return { target, decidedBy: claimedBy, missing: 'route' };
  if (!hasRule(route, sectionName)) return { target, decidedBy: claimedBy, missing: 'rule' };
  const clusters = meshRulesOf(route)
    .map(({ cluster }) => cluster)
    .filter(({ rule }) => sectionName === undefined || nameOfRule(route, rule) === sectionName);
  const deciders = clusters.map(cluster => policyOf(resources, route, cluster.rule)?.metadata.name);
  const isUnused = deciders.length > 0 && !deciders.includes(own);
  const rules = clusters
    .filter((_, index) => deciders[index] === own)
    .flatMap(cluster => resolveEnvoyCluster(resources, cluster) ?? []);
  return { target, decidedBy: claimedBy ?? (isUnused ? deciders[0] : undefined), route, rules };
}

/** Whether a policy can name the rule. */
function hasRule(route: Route, sectionName: string | undefined): boolean {
  return sectionName === undefined || rulesOf(route).some(rule => nameOfRule(route, rule) === sectionName);
}

/** Why a policy does not apply to a target. */
export function unappliedProblems(
  object: MeshRoutePolicy,
  { target, decidedBy, missing }: ResolvedTarget,
): readonly Problem<'TargetNotFound' | 'Conflicted'>[] {
  const about = refTo(object);
  const title = titleOfTarget(target);
  const text = `${title}: MeshRoutePolicy ${decidedBy} applies, which is older or names the rule`;
  const fix = 'remove the target from spec.targetRefs of one of them';
  return [
    ...(missing ? [{ reason: 'TargetNotFound', about, ...whyMissing(target, missing) } as const] : []),
    ...(decidedBy === undefined ? [] : [{ reason: 'Conflicted', about, text, fix } as const]),
  ];
}

function whyMissing(target: RouteTarget, missing: 'route' | 'rule'): Why {
  const { kind, name, sectionName } = target;
  if (missing === 'route')
    return {
      text: `${titleOfTarget(target)} does not exist in this namespace`,
      fix: 'create it, or correct spec.targetRefs',
    };
  const text = `${kind} ${name} has no rule with the name ${sectionName}`;
  if (isOverHttp(kind)) return { text, fix: 'set name in the rule, or correct sectionName' };
  const why = `${text}, or several rules, which share their endpoints`;
  return { text: why, fix: 'set name in its only rule, or remove sectionName' };
}

/** Why a policy that applies to a target does not do what it was written for. */
export function policyProblems(
  object: MeshRoutePolicy,
  { target, decidedBy, rules }: ResolvedTarget,
): readonly PolicyProblem[] {
  if (!rules || decidedBy !== undefined) return [];
  if (rules.length > 0) return rules.flatMap(problemsOfRule);
  const text = `${titleOfTarget(target)} has no MeshEndpoints among its backends, so this policy changes nothing`;
  const fix = 'add one to backendRefs, or correct spec.targetRefs';
  return [{ reason: 'NoMeshEndpoints', about: refTo(object), text, fix }];
}

/** A target as users read it, such as rule checkout of HTTPRoute web. */
export function titleOfTarget({ kind, name, sectionName }: RouteTarget): string {
  return sectionName === undefined ? `${kind} ${name}` : `rule ${sectionName} of ${kind} ${name}`;
}
