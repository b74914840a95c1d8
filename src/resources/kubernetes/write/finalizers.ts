import { VERSION } from '../../../api/generated/kinds.ts';
import type { KindName } from '../../../api/generated/kinds.ts';
import type { Ref } from '../../../api/key.ts';
import { refTo } from '../../../api/references.ts';
import { ResourceError } from '../../resources.ts';
import type { OwnResource } from '../../resources.ts';
import { pathOf } from '../served-kinds.ts';
import { contendedError, goneError, wordsFor } from './errors.ts';
import { failedFor, finalizersIn, getLive, MAX_ATTEMPTS, patchRequest, takeAnswer } from './requests.ts';
import type { PatchStep, Seen, WriteDeps } from './requests.ts';
import { sameObject } from './status.ts';

/** What becomes of the finalizers of an object; the same list where there is nothing to do. */
type Edit = (finalizers: readonly string[]) => readonly string[];

/** Adds a finalizer at the end. */
export function adding(finalizer: string): Edit {
  return names => (names.includes(finalizer) ? names : [...names, finalizer]);
}

/** Removes a finalizer, however often it is there. */
export function removing(finalizer: string): Edit {
  return names => (names.includes(finalizer) ? names.filter(name => name !== finalizer) : names);
}

/** Edits the finalizers of an object while they and its uid are as they are known to be; else reads it, and edits those. */
export async function editFinalizers(deps: WriteDeps, object: OwnResource, edit: Edit): Promise<void> {
  const ref = refTo<KindName>(object);
  const path = pathOf(ref, VERSION);
  const { uid = '' } = object.metadata;
  const getMetadata = async () => {
    const seen = await getLive(deps, path);
    if (seen?.uid !== uid || uid === '') throw goneError(ref);
    return seen.metadata;
  };
  const stored = sameObject(object, deps.read.get(ref));
  let metadata: Seen['metadata'] = stored ? { ...stored.metadata } : await getMetadata();
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    const before = finalizersIn({ metadata });
    const after = edit(before);
    if (after === before) return;
    if (after.length > before.length) refuseIfDeleted(ref, metadata);
    try {
      const answer = await deps.ask(patchRequest(path, steps(uid, before, after)));
      takeAnswer(deps, answer);
      return;
    } catch (failure) {
      if (failedFor(failure, 'NotFound')) throw goneError(ref);
      if (!failedFor(failure, 'Conflict', 'Invalid')) throw failure;
      const { resourceVersion } = metadata;
      metadata = await getMetadata();
      // Nothing has moved, so that it was not a test that failed. The list alone may be as it was before once more.
      if (failure.reason === 'Invalid' && metadata['resourceVersion'] === resourceVersion) throw failure;
    }
  }
  throw contendedError(ref);
}

function refuseIfDeleted(ref: Ref, { deletionTimestamp }: Seen['metadata']): void {
  if (deletionTimestamp !== undefined)
    throw new ResourceError('Refused', `${wordsFor(ref)} is being deleted: nobody can hold it any longer`);
}

/** An API server keeps no empty list, and takes null for what is not there. */
function steps(uid: string, before: readonly string[], after: readonly string[]): readonly PatchStep[] {
  const path = '/metadata/finalizers';
  return [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path, value: before.length === 0 ? null : before },
    after.length === 0 ? { op: 'remove', path } : { op: 'add', path, value: after },
  ];
}
