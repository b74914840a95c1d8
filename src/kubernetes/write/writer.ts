import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import type { ReadResources, WriteResources } from '../../store/resources.ts';
import type { PutResponses } from '../reflector/store-updates.ts';
import { removeAnnotation } from './annotations.ts';
import { describeObject } from './errors.ts';
import { fencedWrites } from './fenced.ts';
import type { FencedDeps } from './fenced.ts';
import { adding, editFinalizers, removing } from './finalizers.ts';
import { applyOwned, removeOwned } from './owned.ts';
import { Applied } from './requests.ts';
import type { WriteDeps } from './requests.ts';
import { replaceStatus } from './replace-status.ts';

export type WriterDeps = FencedDeps & {
  /** The store in sync with the same server. */
  readonly read: Pick<ReadResources, 'get'>;
  /** Puts the objects in responses into that store. */
  readonly updates: PutResponses;
};

/**
 * Writes to an API server by server-side apply, which leaves the fields of others alone. Nothing is sent where the store
 * already has what is to be written.
 */
export function createWriter({ read, updates, ...fencing }: WriterDeps): WriteResources {
  const applied = new Applied(read);
  const perform = fencedWrites(fencing);
  const write = (ref: Ref, doing: string, act: (deps: WriteDeps) => Promise<void>) =>
    perform(describeObject(ref), doing, send => act({ read, updates, applied, send }));
  return {
    replaceStatus: (object, status) =>
      write(refTo(object), 'writing status', deps => replaceStatus(deps, object, status)),
    addFinalizer: (object, finalizer) =>
      write(refTo(object), 'adding a finalizer', deps => editFinalizers(deps, object, adding(finalizer))),
    removeFinalizer: (object, finalizer) =>
      write(refTo(object), 'removing a finalizer', deps => editFinalizers(deps, object, removing(finalizer))),
    removeAnnotation: (object, annotation) =>
      write(refTo(object), 'removing an annotation', deps => removeAnnotation(deps, object, annotation)),
    apply: object => write(refTo(object), 'apply', deps => applyOwned(deps, object)),
    remove: ref => write(ref, 'delete', deps => removeOwned(deps, ref)),
  };
}
