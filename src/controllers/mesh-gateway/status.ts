import { conditionsOf } from '../../api/conditions.ts';
import type { ConditionUpdate } from '../../api/conditions.ts';
import type { Kinds } from '../../api/generated/types.ts';
import type { Target } from './gather.ts';

type MeshGateway = Kinds['MeshGateway'];

/** The status of a MeshGateway. */
export function statusOf(
  { metadata: { name, generation }, status }: MeshGateway,
  targets: readonly Target[],
  now: Date,
): NonNullable<MeshGateway['status']> {
  const observed = { generation, now };
  return {
    observedGeneration: generation ?? 0,
    conditions: conditionsOf([acceptedOf(name, targets)], status?.conditions, observed),
  };
}

/*
 * The condition Accepted, by the targets:
 *
 *   an older MeshGateway decides about one   False, Conflicted
 *   one does not exist                       False, TargetNotFound
 *   else                                     True, Accepted
 *
 * The settings apply to the other targets in any case.
 */
function acceptedOf(name: string, targets: readonly Target[]): ConditionUpdate {
  const type = 'Accepted';
  const conflicts = targets.filter(({ decidedBy = name }) => decidedBy !== name);
  const missing = targets.filter(({ exists }) => !exists);
  const [conflict] = conflicts;
  if (conflict) {
    const message = `${namesOf(conflicts)}: MeshGateway ${conflict.decidedBy ?? ''} decides, as the oldest that targets it: remove the Gateway from spec.targetRefs of one of them`;
    return { type, status: 'False', reason: 'Conflicted', message };
  }
  if (missing.length > 0) {
    const message = `${namesOf(missing)}: no such Gateway in this namespace: create it, or correct spec.targetRefs`;
    return { type, status: 'False', reason: 'TargetNotFound', message };
  }
  return { type, status: 'True', reason: 'Accepted', message: `decides about ${namesOf(targets)}` };
}

function namesOf(targets: readonly Target[]): string {
  return `${targets.length > 1 ? 'Gateways' : 'Gateway'} ${targets.map(({ gateway }) => gateway.name).join(', ')}`;
}
