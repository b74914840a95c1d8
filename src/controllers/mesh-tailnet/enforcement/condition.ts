import { findCondition } from '../../../api/conditions.ts';
import type { ConditionUpdate } from '../../../api/conditions.ts';
import type { Kinds } from '../../../api/generated/types.ts';
import { COMPONENTS, MESH_POD, PORTS } from '../../../api/names.ts';
import type { EnforcementReason, Finding } from './verdict.ts';

/** The type of the condition, which does not affect Ready. */
export const ENFORCED = 'NetworkPoliciesEnforced';

type ShownReason = Exclude<EnforcementReason, 'NotTried'>;

/** The closed list of reasons of the condition where it is not True. */
export const UNENFORCED_REASONS = [
  'NotEnforced',
  'NotInstalled',
  'NoMeshPod',
  'NoExtensionServer',
  'Unreachable',
  'NotReported',
] as const satisfies readonly Exclude<ShownReason, typeof ENFORCED>[];

const STATUS = { enforced: 'True', 'not-enforced': 'False', unknown: 'Unknown' } as const;

/** As before while a replica of the operator has only started, and undefined where it never was; undefined for pools that others run. */
export function enforcedOf(
  { metadata, spec, status }: Kinds['MeshTailnet'],
  finding: Finding | undefined,
): ConditionUpdate | undefined {
  if (!finding || spec.pool.mode !== 'Managed' || metadata.deletionTimestamp !== undefined) return undefined;
  const { enforcement, reason, pods } = finding;
  if (reason === 'NotTried') return findCondition(status?.conditions, ENFORCED);
  const exposed = EXPOSED[spec.pool.front === 'Off' ? 'Off' : 'On'];
  const message = messageOf(reason, pods.join(', '), exposed);
  return { type: ENFORCED, status: STATUS[enforcement], reason, message };
}

const MESH_PODS = `port ${MESH_POD.ports.metrics} of mesh pods`;
const SERVER = `port ${PORTS.grpc} of the extension server`;
const FORBIDDEN = `${SERVER}, which the NetworkPolicy ${COMPONENTS.extensionServer} forbids`;

/** What protects mesh pods without policies, and the fix. */
const EXPOSED = {
  Off: 'every pod of the cluster that reaches a mesh pod may send traffic into the tailnet through it: use a network plugin that enforces NetworkPolicies, or set spec.pool.front to Auto',
  On: 'the front of mesh pods (spec.pool.front) keeps other pods of the cluster from their proxy, and nothing keeps them from other ports: use a network plugin that enforces NetworkPolicies, or run no pods that you do not trust',
} as const;

function messageOf(reason: ShownReason, pods: string, exposed: string): string {
  switch (reason) {
    case 'NetworkPoliciesEnforced':
      return `each operator pod connects to ${MESH_PODS}, and to no ${FORBIDDEN}`;
    case 'NotEnforced':
      return `${pods} can connect to ${FORBIDDEN}, so that NetworkPolicies are not enforced, unless another one permits that; ${exposed}`;
    case 'NotInstalled':
      return `the manifests have no NetworkPolicies (networkPolicies.enabled: false); ${exposed}`;
    case 'NoMeshPod':
      return `not known: no mesh pod is ready to which the operator may connect`;
    case 'NoExtensionServer':
      return `not known: no pod of the extension server is ready, to which the operator may not connect`;
    case 'Unreachable':
      return `not known: ${pods} can connect neither to ${MESH_PODS}, which the policies permit, nor to ${SERVER}, which they forbid; check the network of the pod`;
    case 'NotReported':
      return `not known: ${pods} has not reported it for minutes, or is of an earlier version`;
  }
}
