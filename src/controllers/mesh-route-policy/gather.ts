import type { Kinds, RouteTarget } from '../../api/generated/types.ts';
import { isEqual } from '../../api/json.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import type { Route } from '../../api/objects/gateway-api.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import { refTo } from '../../api/objects/references.ts';
import { Derived } from '../../store/derived.ts';
import type { TrackedRead, Tracking } from '../../store/tracking.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { routingKinds } from '../../traffic/access.ts';
import { gatewaysOf } from '../../traffic/attachments.ts';
import { failoverSupportOf, policyProblems } from '../../traffic/policy/problems.ts';
import type { FailoverSupport } from '../../traffic/policy/problems.ts';
import type { PolicyProblem } from '../../traffic/policy/route-policy.ts';
import { claiming, nameOfRule, policyOf } from '../../traffic/policy/route-policy.ts';
import { meshRulesOf, resolveEnvoyCluster, rulesOf } from '../../traffic/resolve-route.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';

type MeshRoutePolicy = Kinds['MeshRoutePolicy'];

export type GatherDeps = {
  readonly tracking: Tracking;
  readonly values: Pick<TrafficValues, 'reads' | 'settingsResources'>;
};

/** A target of a MeshRoutePolicy, and what became of it. */
export type Target = { readonly target: RouteTarget } & (
  | { readonly is: 'missing'; readonly what: 'route' | 'rule' }
  | {
      readonly is: 'found';
      readonly gateways: readonly { readonly ref: Ref<'Gateway'>; readonly failover: FailoverSupport }[];
      /** The policy that applies instead of this one; undefined where this one does. */
      readonly decidedBy: string | undefined;
      readonly problems: readonly PolicyProblem[];
    }
);

/** What the status of a MeshRoutePolicy depends on. */
export type Input = { readonly object: MeshRoutePolicy; readonly targets: readonly Target[] };

/** Reads what the status of a MeshRoutePolicy depends on. */
export function gatherer({
  tracking,
  values,
}: GatherDeps): (object: MeshRoutePolicy, read: TrackedRead) => Input {
  // Most changes of routes and endpoints leave it as it is.
  const targets = new Derived<readonly Target[]>(
    tracking,
    [...values.reads, ...routingKinds],
    (key, read) => {
      const object = read.exceptStatus.get(refOf(key as Key) as Ref<'MeshRoutePolicy'>);
      const resources = values.settingsResources(read);
      return object?.spec.targetRefs.map(target => targetOf(object, target, resources)) ?? [];
    },
    isEqual,
  );
  return (object, read) => ({ object, targets: read.value(targets, keyOf(refTo(object))) });
}

function targetOf(object: MeshRoutePolicy, target: RouteTarget, resources: TrafficResources): Target {
  const { kind, name, sectionName } = target;
  const { namespace = '', name: own } = object.metadata;
  const route = resources.route({ kind, namespace, name });
  if (!route) return { target, is: 'missing', what: 'route' };
  if (!hasRule(route, sectionName)) return { target, is: 'missing', what: 'rule' };
  const clusters = meshRulesOf(route)
    .map(({ cluster }) => cluster)
    .filter(({ rule }) => sectionName === undefined || nameOfRule(route, rule) === sectionName);
  const deciders = clusters.map(cluster => policyOf(resources, route, cluster.rule)?.metadata.name);
  const oldest = oldestOf(claiming(resources.routePolicies(refTo(route)), target))?.metadata.name;
  const isUnused = deciders.length > 0 && !deciders.includes(own);
  const decidedBy = oldest !== own ? oldest : isUnused ? deciders[0] : undefined;
  const rules = clusters
    .filter((_, index) => deciders[index] === own)
    .flatMap(cluster => resolveEnvoyCluster(resources, cluster) ?? []);
  return {
    target,
    is: 'found',
    gateways: gatewaysOf(route, resources)
      .map(key => refOf(key) as Ref<'Gateway'>)
      .map(ref => ({ ref, failover: failoverSupportOf(resources, rules, ref) })),
    decidedBy,
    problems: decidedBy === undefined ? policyProblems(refTo(object), target, rules) : [],
  };
}

/** Whether a policy can name the rule. */
function hasRule(route: Route, sectionName: string | undefined): boolean {
  return sectionName === undefined || rulesOf(route).some(rule => nameOfRule(route, rule) === sectionName);
}
