import { findCondition } from '../../../api/conditions.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { COMPONENTS, MESH_POD, PORTS } from '../../../api/names.ts';
import { conditionOf } from '../../../api/problem.ts';
import type { ProblemAt, Why } from '../../../api/problem.ts';
import type { EnforcementReason, Finding } from './verdict.ts';

type Problem = ProblemAt<'MeshTailnet NetworkPoliciesEnforced'>;

/** The type of the condition, which does not affect Ready. */
export const ENFORCED = 'NetworkPoliciesEnforced';

/** As before while a replica of the operator has only started, and undefined where it never was; undefined for pools that others run. */
export function enforcedOf(
  { metadata, spec, status }: Kinds['MeshTailnet'],
  finding: Finding | undefined,
): ConditionUpdate | undefined {
  if (!finding || spec.pool.mode !== 'Managed' || metadata.deletionTimestamp !== undefined) return undefined;
  const { reason, pods } = finding;
  if (reason === 'NotTried') return findCondition(status?.conditions, ENFORCED);
  const message = `each operator pod connects to ${MESH_PODS}, and to no ${FORBIDDEN}`;
  const exposed = EXPOSED[spec.pool.front === 'Off' ? 'Off' : 'On'];
  const problem = reason === ENFORCED ? undefined : problemOf(reason, pods.join(', '), exposed);
  return conditionOf('MeshTailnet NetworkPoliciesEnforced', [problem], { reason: ENFORCED, message });
}

const MESH_PODS = `port ${MESH_POD.ports.metrics} of mesh pods`;
const SERVER = `port ${PORTS.grpc} of the extension server`;
const FORBIDDEN = `${SERVER}, which the NetworkPolicy ${COMPONENTS.extensionServer} forbids`;

/** What protects mesh pods without policies, and the fix. */
const EXPOSED = {
  Off: {
    text: 'every pod of the cluster that reaches a mesh pod may send traffic into the tailnet through it',
    fix: 'use a network plugin that enforces NetworkPolicies, or set spec.pool.front to Auto',
  },
  On: {
    text: 'the front of mesh pods (spec.pool.front) keeps other pods of the cluster from their proxy, and nothing keeps them from other ports',
    fix: 'use a network plugin that enforces NetworkPolicies, or run no pods that you do not trust',
  },
} as const;

function problemOf(
  reason: Exclude<EnforcementReason, 'NotTried' | typeof ENFORCED>,
  pods: string,
  exposed: Why,
): Problem {
  const but = (text: string) => ({ reason, ...exposed, text: `${text}; ${exposed.text}` });
  const unknown = (text: string) => ({ reason, text: `not known: ${text}` });
  switch (reason) {
    case 'NotEnforced':
      return but(
        `${pods} can connect to ${FORBIDDEN}, so that NetworkPolicies are not enforced, unless another one permits that`,
      );
    case 'NotInstalled':
      return but('the manifests have no NetworkPolicies (networkPolicies.enabled: false)');
    case 'NoMeshPod':
      return unknown('no mesh pod is ready to which the operator may connect');
    case 'NoExtensionServer':
      return unknown('no pod of the extension server is ready, to which the operator may not connect');
    case 'Unreachable':
      return unknown(
        `${pods} can connect neither to ${MESH_PODS}, which the policies permit, nor to ${SERVER}, which they forbid; check the network of the pod`,
      );
    case 'NotReported':
      return unknown(`${pods} has not reported it for minutes, or is of an earlier version`);
  }
}
