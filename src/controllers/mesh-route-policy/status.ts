import { conditionsOf } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import { GROUP } from '../../api/generated/kinds.ts';
import type { AncestorRef, Kinds, PolicyAncestor } from '../../api/generated/types.ts';
import { isEqual } from '../../api/json.ts';
import { isOverHttp, keyOf } from '../../api/key.ts';
import { COMPONENTS } from '../../api/names.ts';
import { GATEWAY_GROUP } from '../../api/objects/gateway-api.ts';
import { titleOfTarget } from '../../traffic/policy/problems.ts';
import type { FailoverSupport } from '../../traffic/policy/problems.ts';
import type { Input, Target } from './gather.ts';

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
    const updates = [acceptedOf(members), resolvedRefsOf(members), ...failoverSupportedOf(failovers)];
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
    const gateways = each.is === 'found' ? each.gateways : [];
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
function acceptedOf(targets: readonly Target[]): ConditionUpdate {
  const type = 'Accepted';
  const [conflict] = targets.flatMap(each =>
    each.is === 'found' && each.decidedBy !== undefined ? [{ ...each, by: each.decidedBy }] : [],
  );
  if (conflict) {
    const message = `${titleOfTarget(conflict.target)}: MeshRoutePolicy ${conflict.by} applies, which is older or names the rule: remove the target from spec.targetRefs of one of them`;
    return { type, status: 'False', reason: 'Conflicted', message };
  }
  const missing = targets.find(each => each.is === 'missing');
  if (missing) return { type, status: 'False', reason: 'TargetNotFound', message: whyMissing(missing) };
  const [first] = targets;
  if (first?.is === 'found' && first.gateways.length === 0) {
    const message = `no Gateway accepts ${titleOfTarget(first.target)}: the policy applies once one does; status.parents of the route has the reason`;
    return { type, status: 'Unknown', reason: 'NoGateway', message };
  }
  const message = `applies to ${targets.map(({ target }) => titleOfTarget(target)).join(', ')}`;
  return { type, status: 'True', reason: 'Accepted', message };
}

function whyMissing({ target, what }: Extract<Target, { readonly is: 'missing' }>): string {
  if (what === 'route')
    return `${titleOfTarget(target)} does not exist in this namespace: create it, or correct spec.targetRefs`;
  const { kind, name, sectionName } = target;
  return isOverHttp(kind)
    ? `${kind} ${name} has no rule with the name ${sectionName}: set name in the rule, or correct sectionName`
    : `${kind} ${name} has no rule with the name ${sectionName}, or several rules, which share their endpoints: set name in its only rule, or remove sectionName`;
}

/** The condition ResolvedRefs: False with the first problem, and the number of others. */
function resolvedRefsOf(targets: readonly Target[]): ConditionUpdate {
  const type = 'ResolvedRefs';
  const [first, ...others] = targets.flatMap(each => (each.is === 'found' ? each.problems : []));
  if (!first) {
    const message = 'the policy has its effect on all rules that it applies to';
    return { type, status: 'True', reason: 'ResolvedRefs', message };
  }
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return { type, status: 'False', reason: first.reason, message: `${first.message}${more}` };
}

/** The condition FailoverSupported at a Gateway, of a policy with levels. */
function failoverSupportedOf(failovers: readonly FailoverSupport[]): readonly ConditionUpdate[] {
  const type = 'FailoverSupported';
  for (const each of failovers)
    if (each.is === 'service-in-rule')
      return [{ type, status: 'False', reason: 'ServiceInRule', message: each.message }];
  if (!failovers.some(({ is }) => is === 'supported')) return [];
  const message = 'levels are used whatever endpoints the backends of the rules have';
  return [{ type, status: 'True', reason: 'Supported', message }];
}
