import { findCondition } from '../../../api/conditions.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { conditionOf } from '../../../api/problem.ts';
import type { ProblemAt } from '../../../api/problem.ts';

type Problem = ProblemAt<'MeshTailnet FrontReady'>;

/** What the lists of a front are made from. */
export type FrontState = {
  /** Whether it serves listed callers and destinations alone. */
  readonly isOn: boolean;
  /** Whether the Envoys and operators are known. */
  readonly areCallersKnown: boolean;
  /** The namespaces that declare more destinations than their share. */
  readonly cut: readonly string[];
  /** How many callers the list lacks. */
  readonly omittedCallers: number;
  /** The addresses of the nodes of Envoys. */
  readonly nodeAddresses: readonly string[];
};

/** The type of the condition, which does not affect Ready. */
export const FRONT = 'FrontReady';

/** The most names in a message. */
const MAX_NAMES = 5;

/** Whether the proxy of mesh pods serves those that it should; as before until its lists are made, which is so after each start. */
export function frontConditionOf(
  { spec, status }: Pick<Kinds['MeshTailnet'], 'spec' | 'status'>,
  state: FrontState | undefined,
  refusedCallers: readonly string[],
): ConditionUpdate | undefined {
  if (!state) return findCondition(status?.conditions, FRONT);
  if (state.isOn) {
    const message = 'the proxy of mesh pods serves Envoys and operators alone, toward declared endpoints';
    return conditionOf('MeshTailnet FrontReady', [problemOf(state, refusedCallers)], {
      reason: FRONT,
      message,
    });
  }
  const why = spec.pool.front === 'Off' ? 'spec.pool.front is Off' : 'NetworkPolicies are enforced';
  const message = `the proxy of mesh pods serves every caller that reaches it, toward every device, since ${why}`;
  return conditionOf('MeshTailnet FrontReady', [], { reason: 'Open', message });
}

function problemOf(
  { nodeAddresses, areCallersKnown, omittedCallers, cut }: FrontState,
  refusedCallers: readonly string[],
): Problem | undefined {
  const nodes = refusedCallers.filter(address => nodeAddresses.includes(address));
  if (nodes.length > 0)
    return {
      reason: 'NodeAddressRefused',
      text: `the proxy of mesh pods refuses ${listed(nodes)}, the address of a node of Envoys: Envoys with hostNetwork, or whose connections a node translates, arrive with it`,
      fix: `add ${nodes.length === 1 ? 'it' : 'them, or the range of nodes,'} to spec.pool.allowedCallers`,
    };
  if (!areCallersKnown)
    return {
      reason: 'CallersUnknown',
      text: 'the pods of Envoys and operators are not known yet, so that the proxy of mesh pods serves the callers of before',
      fix: 'see the log of the operator, which may have no right to list pods in envoyGateway.proxyNamespaces',
    };
  if (omittedCallers > 0)
    return {
      reason: 'TooManyCallers',
      text: `the list of callers of the proxy is full, and lacks ${omittedCallers} addresses of Envoys, which are refused`,
      fix: 'run fewer pods of Envoys, or add a range of their addresses to spec.pool.allowedCallers',
    };
  if (cut.length === 0) return undefined;
  const text = `the lists of the proxy are full, and lack endpoints of ${listed(cut)}`;
  return { reason: 'TooManyDestinations', text, fix: 'declare fewer, or divide them among MeshTailnets' };
}

function listed(names: readonly string[]): string {
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `${names.slice(0, MAX_NAMES).join(', ')}${more}`;
}
