import { VERSION } from '../../api/generated/kinds.ts';
import type { KindName } from '../../api/generated/kinds.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/references.ts';
import { ResourceError } from '../resources.ts';
import type { OwnResource } from '../resources.ts';
import { pathOf } from './kinds.ts';
import { contendedError, goneError, wordsFor } from './write-error.ts';
import { failedFor, finalizersIn, lookAt, MOST_ATTEMPTS, takeAnswer } from './write-ports.ts';
import type { Seen, WritePorts } from './write-ports.ts';
import { patching } from './write-request.ts';
import type { PatchStep } from './write-request.ts';
import { sameLife } from './write-status.ts';

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

/** Edits the finalizers of an object while they and its life are as they are known to be; else looks, and edits those. */
export async function editFinalizers(ports: WritePorts, object: OwnResource, edit: Edit): Promise<void> {
  const ref = refTo<KindName>(object);
  const path = pathOf(ref, VERSION);
  const { uid = '' } = object.metadata;
  const look = async () => {
    const seen = await lookAt(ports, path);
    if (seen?.uid !== uid || uid === '') throw goneError(ref);
    return seen.metadata;
  };
  const stored = sameLife(object, ports.read.get(ref));
  let metadata: Seen['metadata'] = stored ? { ...stored.metadata } : await look();
  for (let attempts = 1; attempts <= MOST_ATTEMPTS; attempts++) {
    const before = finalizersIn({ metadata });
    const after = edit(before);
    if (after === before) return;
    if (after.length > before.length) refuseIfDying(ref, metadata);
    try {
      const answer = await ports.ask(patching(path, steps(uid, before, after)));
      takeAnswer(ports, answer);
      return;
    } catch (failure) {
      if (failedFor(failure, 'NotFound')) throw goneError(ref);
      if (!failedFor(failure, 'Conflict', 'Invalid')) throw failure;
      const { resourceVersion } = metadata;
      metadata = await look();
      // Nothing has moved, so that it was not a test that failed. The list alone may be as it was before once more.
      if (failure.reason === 'Invalid' && metadata['resourceVersion'] === resourceVersion) throw failure;
    }
  }
  throw contendedError(ref);
}

function refuseIfDying(ref: Ref, { deletionTimestamp }: Seen['metadata']): void {
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
