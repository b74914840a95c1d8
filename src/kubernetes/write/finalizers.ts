import { VERSION } from '../../api/generated/kinds.ts';
import type { KindName } from '../../api/generated/kinds.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import { ResourceError } from '../../store/resources.ts';
import type { OwnResource } from '../../store/resources.ts';
import { pathOf } from '../served-kinds.ts';
import { contendedError, goneError, describeObject } from './errors.ts';
import { failedWith, finalizersIn, getLive, MAX_ATTEMPTS, patchRequest, putResponse } from './requests.ts';
import type { PatchStep, Seen, WriteDeps } from './requests.ts';
import { sameObject } from './replace-status.ts';

/** Returns the same list where nothing is to be changed. */
type Edit = (finalizers: readonly string[]) => readonly string[];

export function adding(finalizer: string): Edit {
  return names => (names.includes(finalizer) ? names : [...names, finalizer]);
}

export function removing(finalizer: string): Edit {
  return names => (names.includes(finalizer) ? names.filter(name => name !== finalizer) : names);
}

/** Edits the finalizers of an object by a patch that tests them and the uid; reads the object after a conflict. */
export async function editFinalizers(deps: WriteDeps, object: OwnResource, edit: Edit): Promise<void> {
  const ref = refTo<KindName>(object);
  const path = pathOf(ref, VERSION);
  const { uid = '' } = object.metadata;
  const getMetadata = async () => {
    const seen = await getLive(deps, path);
    if (seen?.uid !== uid || uid === '') throw goneError(describeObject(ref));
    return seen.metadata;
  };
  const stored = sameObject(object, deps.read.get(ref));
  let metadata: Seen['metadata'] = stored ? { ...stored.metadata } : await getMetadata();
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    const before = finalizersIn({ metadata });
    const after = edit(before);
    if (after === before) return;
    if (after.length > before.length) refuseIfBeingDeleted(ref, metadata);
    try {
      const response = await deps.send(patchRequest(path, steps(uid, before, after)));
      putResponse(deps, response);
      return;
    } catch (failure) {
      if (failedWith(failure, 'NotFound')) throw goneError(describeObject(ref));
      if (!failedWith(failure, 'Conflict', 'Invalid')) throw failure;
      const { resourceVersion } = metadata;
      metadata = await getMetadata();
      // The object is unchanged, so it was not a test of the patch that failed.
      if (failure.reason === 'Invalid' && metadata['resourceVersion'] === resourceVersion) throw failure;
    }
  }
  throw contendedError(ref);
}

function refuseIfBeingDeleted(ref: Ref, { deletionTimestamp }: Seen['metadata']): void {
  if (deletionTimestamp !== undefined)
    throw new ResourceError('Refused', `${describeObject(ref)} is being deleted: finalizers cannot be added`);
}

/** An API server stores no empty list, and null in a test stands for a missing field. */
function steps(uid: string, before: readonly string[], after: readonly string[]): readonly PatchStep[] {
  const path = '/metadata/finalizers';
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: before.length === 0 ? null : before },
    after.length === 0 ? { op: 'remove', path } : { op: 'add', path, value: after },
  ];
}
