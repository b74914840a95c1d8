import { VERSION } from '../../api/generated/kinds.ts';
import type { KindName } from '../../api/generated/kinds.ts';
import { refTo } from '../../api/objects/references.ts';
import type { OwnResource } from '../../store/resources.ts';
import { pathOf } from '../served-kinds.ts';
import { fieldsOf } from '../unstructured.ts';
import { describeObject, goneError } from './errors.ts';
import { failedWith, getLive, patchRequest, putResponse } from './requests.ts';
import type { WriteDeps } from './requests.ts';

/** Removes an annotation by a patch that tests the uid: server-side apply removes no field that another manager has set. */
export async function removeAnnotation(
  deps: WriteDeps,
  object: OwnResource,
  annotation: string,
): Promise<void> {
  const ref = refTo<KindName>(object);
  const path = pathOf(ref, VERSION);
  const { uid = '' } = object.metadata;
  const field = `/metadata/annotations/${annotation.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  const steps = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'remove', path: field },
  ] as const;
  try {
    putResponse(deps, await deps.send(patchRequest(path, steps)));
  } catch (failure) {
    if (!failedWith(failure, 'NotFound', 'Conflict', 'Invalid')) throw failure;
    const seen = await getLive(deps, path);
    if (seen?.uid !== uid || uid === '') throw goneError(describeObject(ref));
    // Nothing to remove fails the patch, too.
    if (fieldsOf(seen.metadata['annotations'])?.[annotation] !== undefined) throw failure;
  }
}
