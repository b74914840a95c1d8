import { findCondition } from '../../../api/conditions.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';

/** What the lists of a front are made from. */
export type FrontState = {
  /** Whether it serves listed callers and destinations alone. */
  readonly isOn: boolean;
  /** Whether the Envoys and operators are known. */
  readonly areCallersKnown: boolean;
  /** The namespaces that declare more destinations than their share. */
  readonly cut: readonly string[];
  /** The addresses of the nodes of Envoys. */
  readonly nodeAddresses: readonly string[];
};

/** The type of the condition, which does not affect Ready. */
export const FRONT = 'FrontReady';

/** The closed list of reasons of the condition where it is not True. */
export const FRONT_REASONS = ['NodeAddressRefused', 'CallersUnknown', 'TooManyDestinations'] as const;

/** The most names in a message. */
const MAX_NAMES = 5;

/** Whether the proxy of mesh pods serves those that it should; as before until its lists are made, which is so after each start. */
export function frontConditionOf(
  { spec, status }: Pick<Kinds['MeshTailnet'], 'spec' | 'status'>,
  state: FrontState | undefined,
  refusedCallers: readonly string[],
): ConditionUpdate | undefined {
  if (!state) return findCondition(status?.conditions, FRONT);
  const no = (reason: (typeof FRONT_REASONS)[number], message: string): ConditionUpdate => ({
    type: FRONT,
    status: 'False',
    reason,
    message,
  });
  if (!state.isOn) {
    const why = spec.pool.front === 'Off' ? 'spec.pool.front is Off' : 'NetworkPolicies are enforced';
    const message = `the proxy of mesh pods serves every caller that reaches it, toward every device, since ${why}`;
    return { type: FRONT, status: 'True', reason: 'Open', message };
  }
  const nodes = refusedCallers.filter(address => state.nodeAddresses.includes(address));
  if (nodes.length > 0) {
    const fix = `add ${nodes.length === 1 ? 'it' : 'them, or the range of nodes,'} to spec.pool.allowedCallers`;
    return no(
      'NodeAddressRefused',
      `the proxy of mesh pods refuses ${listed(nodes)}, the address of a node of Envoys: Envoys with hostNetwork, or whose connections a node translates, arrive with it: ${fix}`,
    );
  }
  if (!state.areCallersKnown)
    return no(
      'CallersUnknown',
      'the pods of Envoys and operators are not known yet, so that the proxy of mesh pods serves the callers of before: see the log of the operator, which may have no right to list pods in envoyGateway.proxyNamespaces',
    );
  if (state.cut.length > 0)
    return no(
      'TooManyDestinations',
      `the lists of the proxy are full, and lack endpoints of ${listed(state.cut)}: declare fewer, or divide them among MeshTailnets`,
    );
  const message = 'the proxy of mesh pods serves Envoys and operators alone, toward declared endpoints';
  return { type: FRONT, status: 'True', reason: FRONT, message };
}

function listed(names: readonly string[]): string {
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `${names.slice(0, MAX_NAMES).join(', ')}${more}`;
}
