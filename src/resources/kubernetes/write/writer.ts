import type { Ref } from '../../../api/key.ts';
import { refTo } from '../../../api/references.ts';
import { ResourceError } from '../../resources.ts';
import type { ReadResources, WriteResources } from '../../resources.ts';
import type { PutResponses } from '../reflector/store-updates.ts';
import type { KubeRequest } from '../transport/transport.ts';
import { describeObject, writeError } from './errors.ts';
import { adding, editFinalizers, removing } from './finalizers.ts';
import { applyOwned, removeOwned } from './owned.ts';
import { Applied, sendWithRetries } from './requests.ts';
import type { RetryDeps, WriteDeps } from './requests.ts';
import { replaceStatus } from './replace-status.ts';

/** A condition for writes, such as leadership. */
export interface Fence {
  /** Aborted when the current term ends; already aborted where there is none. */
  signal(): AbortSignal;
}

export type WriterDeps = RetryDeps & {
  /** Must hold from the start of a write to its end; without it, writes are always allowed. */
  readonly fence?: Fence;
  /** The store in sync with the same server. */
  readonly read: Pick<ReadResources, 'get'>;
  /** Puts the objects in responses into that store. */
  readonly updates: PutResponses;
};

/**
 * Writes to an API server by server-side apply, which leaves the fields of others alone. Nothing is sent where the store
 * already has what is to be written. A write fails with Unavailable as soon as the fence does not hold; a request that
 * was sent before may still take effect.
 */
export function createWriter({ read, updates, fence, ...retrying }: WriterDeps): WriteResources {
  const applied = new Applied(read);
  const write = async (ref: Ref, doing: string, act: (deps: WriteDeps) => Promise<void>) => {
    // One signal for all requests of a write: a process that lost the fence and regained it may have written something newer.
    const signal = fence?.signal();
    const send = (request: KubeRequest) =>
      sendWithRetries(signal ? { ...request, signal } : request, retrying);
    try {
      signal?.throwIfAborted();
      await act({ read, updates, applied, send });
    } catch (failure) {
      if (!signal?.aborted) throw writeError(ref, doing, failure);
      const why = 'this process is not the leader';
      throw new ResourceError('Unavailable', `${describeObject(ref)}: ${doing} failed: ${why}`);
    }
  };
  return {
    replaceStatus: (object, status) =>
      write(refTo(object), 'writing status', deps => replaceStatus(deps, object, status)),
    addFinalizer: (object, finalizer) =>
      write(refTo(object), 'adding a finalizer', deps => editFinalizers(deps, object, adding(finalizer))),
    removeFinalizer: (object, finalizer) =>
      write(refTo(object), 'removing a finalizer', deps => editFinalizers(deps, object, removing(finalizer))),
    apply: object => write(refTo(object), 'apply', deps => applyOwned(deps, object)),
    remove: ref => write(ref, 'delete', deps => removeOwned(deps, ref)),
  };
}
