import type { Kinds } from '../../api/generated/types.ts';
import { refOf } from '../../api/key.ts';
import type { Ref } from '../../api/key.ts';
import { oldestOf } from '../../api/objects/oldest.ts';
import type { ReadObjects } from '../../store/resources.ts';
import { meshGatewaysByGateway } from '../../store/traffic/resources.ts';
import { targetsOf } from '../../traffic/gateway-settings.ts';

/** A Gateway that a MeshGateway targets. */
export type Target = {
  readonly gateway: Ref<'Gateway'>;
  readonly exists: boolean;
  /** The name of the MeshGateway that decides about it: the oldest of those that target it. */
  readonly decidedBy: string | undefined;
};

/** Reads what the status of a MeshGateway depends on: each target once, in the order of targetRefs. */
export function gather(object: Kinds['MeshGateway'], read: ReadObjects): readonly Target[] {
  return [...new Set(targetsOf(object))].map(key => {
    const gateway = refOf(key) as Ref<'Gateway'>;
    return {
      gateway,
      exists: read.get(gateway) !== undefined,
      decidedBy: oldestOf(read.find(meshGatewaysByGateway, key))?.metadata.name,
    };
  });
}
