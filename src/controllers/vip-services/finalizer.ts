import { GROUP } from '../../api/generated/kinds.ts';
import type { Kinds } from '../../api/generated/types.ts';
import { SKIP_CLEANUP } from '../../api/names.ts';

type MeshTailnet = Kinds['MeshTailnet'];

/** Held by a MeshTailnet while services of this installation may exist in its tailnet. */
export const FINALIZER = `${GROUP}/vip-services`;

/** Whether services of this installation may exist, which are removed before the MeshTailnet. */
export function hasFinalizer({ metadata }: MeshTailnet): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false;
}

/** Whether a MeshTailnet that is being deleted goes without the removal of its services. */
export function skipsCleanup(tailnet: MeshTailnet): boolean {
  const { annotations, deletionTimestamp } = tailnet.metadata;
  return annotations?.[SKIP_CLEANUP] === 'true' && deletionTimestamp !== undefined && hasFinalizer(tailnet);
}
