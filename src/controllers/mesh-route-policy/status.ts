import { conditionsOf } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { AncestorRef, Kinds, PolicyAncestor } from '../../api/generated/types.ts';
import { isEqual } from '../../api/json.ts';
import { keyOf } from '../../api/key.ts';
import { COMPONENTS } from '../../api/names.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import { refTo } from '../../api/objects/references.ts';
import { conditionOf } from '../../api/problem.ts';
import type { ProblemAt, Subject } from '../../api/problem.ts';
import type { FailoverSupport } from '../../traffic/policy/problems.ts';
import { titleOfTarget } from '../../traffic/policy/targets.ts';
import type { Input, Target } from './gather.ts';

type Problem = ProblemAt<'MeshRoutePolicy Accepted'>;

type Status = NonNullable<Kinds['MeshRoutePolicy']['status']>;

/** The name of the operator in the status of policies. */
const CONTROLLER_NAME = `${GROUP}/${COMPONENTS.operator}`;

/** The most ancestors of a policy status. */
const MAX_ANCESTORS = 16;

/** The status of a MeshRoutePolicy: for each Gateway of its routes, and for each target that no Gateway has. */
export function statusOf({ object, targets }: Input, now: Date): Status {
  const { metadata, status } = object;
  const ancestors = groupsOf(metadata.namespace ?? '', targets).map(({ ancestorRef, members, failovers }) => {
    const entry = { ancestorRef, controllerName: CONTROLLER_NAME };
    const before = status?.ancestors?.find(sameAncestor(entry))?.conditions;
    const updates = [
      acceptedOf(refTo(object), members),
      resolvedRefsOf(members),
      ...failoverSupportedOf(failovers),
    ];
    const conditions = conditionsOf(updates, before, { generation: metadata.generation, now });
    return { ...entry, conditions };
  });
  const inOrder = [...ancestors].sort(
    (a, b) => Number(hasProblem(b)) - Number(hasProblem(a)) || (placeOf(a) < placeOf(b) ? -1 : 1),
  );
  return { ancestors: inOrder.slice(0, MAX_ANCESTORS) };
}

/** Whether another entry of a status is about the same ancestor, by the same controller. */
export function sameAncestor(
  one: Pick<PolicyAncestor, 'ancestorRef' | 'controllerName'>,
): (other: PolicyAncestor) => boolean {
  return other => other.controllerName === one.controllerName && isEqual(other.ancestorRef, one.ancestorRef);
}

function hasProblem({ conditions = [] }: PolicyAncestor): boolean {
  return conditions.some(({ status }) => status !== 'True');
}

function placeOf({ ancestorRef: { kind, namespace, name, sectionName } }: PolicyAncestor): string {
  return [kind, namespace, name, sectionName].join('/');
}

type Group = {
  readonly ancestorRef: AncestorRef;
  readonly members: readonly Target[];
  /** How the ancestor supports the levels of each. */
  readonly failovers: readonly FailoverSupport[];
};

/** The targets by Gateway; one that no Gateway has is its own ancestor. */
function groupsOf(namespace: string, targets: readonly Target[]): readonly Group[] {
  const groups = new Map<string, Group>();
  const add = (id: string, ancestorRef: AncestorRef, member: Target, ...failovers: FailoverSupport[]) => {
    const group = groups.get(id) ?? { ancestorRef, members: [], failovers: [] };
    const members = [...group.members, member];
    groups.set(id, { ...group, members, failovers: [...group.failovers, ...failovers] });
  };
  for (const each of targets) {
    const { gateways } = each;
    for (const { ref, failover } of gateways)
      add(keyOf(ref), { group: GATEWAY_GROUP, ...ref }, each, failover);
    const { group, kind, name, sectionName } = each.target;
    const own = { group, kind, namespace, name, ...(sectionName !== undefined && { sectionName }) };
    if (gateways.length === 0) add(Object.values(own).join('/'), own, each);
  }
  return [...groups.values()];
}

/*
 * The condition Accepted, by the targets of an ancestor:
 *
 *   another policy applies to one     False, Conflicted
 *   one does not exist                False, TargetNotFound
 *   no Gateway has the route          Unknown, NoGateway
 *   else                              True, Accepted
 *
 * The policy applies to the other targets in any case.
 */
function acceptedOf(about: Subject, targets: readonly Target[]): ConditionUpdate {
  const problems = targets.flatMap(each => problemsOf(each, about));
  const message = `applies to ${targets.map(({ target }) => titleOfTarget(target)).join(', ')}`;
  return conditionOf('MeshRoutePolicy Accepted', problems, { reason: 'Accepted', message });
}

function problemsOf({ target, gateways, unapplied }: Target, about: Subject): readonly Problem[] {
  if (unapplied.length > 0 || gateways.length > 0) return unapplied;
  const fix = 'the policy applies once one does; status.parents of the route has the reason';
  return [{ reason: 'NoGateway', about, text: `no Gateway accepts ${titleOfTarget(target)}`, fix }];
}

/** The condition ResolvedRefs: False with the first problem, and the number of others. */
function resolvedRefsOf(targets: readonly Target[]): ConditionUpdate {
  const problems = targets.flatMap(each => each.problems);
  const message = 'the policy has its effect on all rules that it applies to';
  const condition = conditionOf('MeshRoutePolicy ResolvedRefs', problems, {
    reason: 'ResolvedRefs',
    message,
  });
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  return { ...condition, message: `${condition.message}${more}` };
}

/** The condition FailoverSupported at a Gateway, of a policy with levels. */
function failoverSupportedOf(failovers: readonly FailoverSupport[]): readonly ConditionUpdate[] {
  if (failovers.every(({ is }) => is === 'without-levels')) return [];
  const problems = failovers.flatMap(each => (each.is === 'unsupported' ? [each.problem] : []));
  const message = 'levels are used whatever endpoints the backends of the rules have';
  return [conditionOf('MeshRoutePolicy FailoverSupported', problems, { reason: 'Supported', message })];
}
