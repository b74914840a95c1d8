import type { Kinds, RouteTarget } from '../../api/generated/types.ts';
import { isEqual } from '../../api/json.ts';
import { keyOf, refOf } from '../../api/key.ts';
import type { Key, Ref } from '../../api/key.ts';
import type { Problem } from '../../api/problem.ts';
import { refTo } from '../../api/objects/references.ts';
import { Derived } from '../../store/derived.ts';
import type { TrackedRead, Tracking } from '../../store/tracking.ts';
import type { TrafficValues } from '../../store/traffic/values.ts';
import { routingKinds } from '../../traffic/access.ts';
import { gatewaysOf } from '../../traffic/attachments.ts';
import { failoverSupportOf } from '../../traffic/policy/problems.ts';
import type { FailoverSupport } from '../../traffic/policy/problems.ts';
import type { PolicyProblem } from '../../traffic/policy/route-policy.ts';
import { policyProblems, resolveTarget, unappliedProblems } from '../../traffic/policy/targets.ts';
import type { TrafficResources } from '../../traffic/traffic-resources.ts';

type MeshRoutePolicy = Kinds['MeshRoutePolicy'];

export type GatherDeps = {
  readonly tracking: Tracking;
  readonly values: Pick<TrafficValues, 'reads' | 'settingsResources'>;
};

/** A target of a MeshRoutePolicy, and what became of it. */
export type Target = {
  readonly target: RouteTarget;
  /** Those of the route. */
  readonly gateways: readonly { readonly ref: Ref<'Gateway'>; readonly failover: FailoverSupport }[];
  /** Why the policy does not apply to it. */
  readonly unapplied: readonly Problem<'TargetNotFound' | 'Conflicted'>[];
  readonly problems: readonly PolicyProblem[];
};

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
  const resolved = resolveTarget(object, target, resources);
  const { route, rules = [] } = resolved;
  return {
    target,
    gateways: (route ? gatewaysOf(route, resources) : [])
      .map(key => refOf(key) as Ref<'Gateway'>)
      .map(ref => ({ ref, failover: failoverSupportOf(resources, rules, ref) })),
    unapplied: unappliedProblems(object, resolved),
    problems: policyProblems(object, resolved),
  };
}
