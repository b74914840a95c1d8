// #region example
import { conditionsOf } from '../../../src/api/conditions.ts';
import type { ConditionUpdate } from '../../../src/api/conditions.ts';
import type { Kinds } from '../../../src/api/generated/types.ts';
import { tailnetsOf } from '../../../src/api/objects/references.ts';
import type { Index, WriteResources } from '../../../src/store/resources.ts';
import type { Controller } from '../../../src/runtime/controller.ts';

type MeshTailnet = Kinds['MeshTailnet'];
type MeshEndpoints = Kinds['MeshEndpoints'];

/** The store is created with this index. */
export const users: Index<'MeshEndpoints'> = {
  name: 'MeshEndpoints by tailnet',
  kind: 'MeshEndpoints',
  valuesOf: tailnetsOf,
};

/** Counts the endpoints of each MeshTailnet in its status. */
export function usageController(write: WriteResources, now: () => Date): Controller<'MeshTailnet'> {
  return {
    name: 'usage',
    kind: 'MeshTailnet',
    reads: ['MeshEndpoints'],
    reconcile: async (ref, read) => {
      const tailnet = read.get(ref);
      if (!tailnet) return { requeue: 'on-change' };
      // A MeshEndpoints that joins, changes or leaves this tailnet runs this again; one whose status alone changes does not.
      const using = read.exceptStatus.find(users, tailnet.spec.tailnet);
      await write.replaceStatus(tailnet, usageStatus(tailnet, using, now()));
      return { requeue: 'on-change' };
    },
  };
}

/** The status that a MeshTailnet should have, computed from the current objects. */
function usageStatus(
  tailnet: MeshTailnet,
  using: readonly MeshEndpoints[],
  now: Date,
): NonNullable<MeshTailnet['status']> {
  const count = using.reduce((sum, { spec }) => sum + (spec.endpoints?.length ?? 0), 0);
  const inUse: ConditionUpdate = {
    type: 'InUse',
    status: count > 0 ? 'True' : 'False',
    reason: count > 0 ? 'EndpointsFound' : 'NoEndpoints',
    message: `${count} endpoints in ${using.length} MeshEndpoints use this tailnet`,
  };
  const observed = { generation: tailnet.metadata.generation, now };
  return { conditions: conditionsOf([inUse], tailnet.status?.conditions, observed) };
}
// #endregion
