import type { Ref } from '../../../api/key.ts';
import { refTo } from '../../../api/references.ts';
import { ResourceError } from '../../resources.ts';
import type { ReadResources, WriteResources } from '../../resources.ts';
import type { TakeAnswers } from '../reflector/store-updates.ts';
import type { KubeRequest } from '../transport/transport.ts';
import { wordsFor, writeError } from './errors.ts';
import { adding, editFinalizers, removing } from './finalizers.ts';
import { applyOwned, removeOwned } from './owned.ts';
import { Applied, askRetrying } from './requests.ts';
import type { RetryDeps, WriteDeps } from './requests.ts';
import { replaceStatus } from './status.ts';

/** What must hold for somebody to write, such as leadership. */
export interface Fence {
  /** Aborted when what holds now does not any more; already aborted where nothing holds. */
  signal(): AbortSignal;
}

export type WriterDeps = RetryDeps & {
  /** Must hold from the beginning of a write to its end; without it, everybody may write. */
  readonly fence?: Fence;
  /** Of the store that is filled from the same server; objects to write come from it. */
  readonly read: Pick<ReadResources, 'get'>;
  /** Puts what the server answers into that store, so that what was written is read from then on. */
  readonly arrivals: TakeAnswers;
};

/**
 * Writes to an API server by server-side apply: our fields are ours, and those of others stay theirs. Nothing is sent
 * where the store has already what is to be written. A write fails as Unavailable where the fence does not hold, and as
 * soon as it does not any more; a request that was sent before may still be carried out.
 */
export function writesTo({ read, arrivals, fence, ...retrying }: WriterDeps): WriteResources {
  const applied = new Applied(read);
  const write = async (ref: Ref, doing: string, act: (deps: WriteDeps) => Promise<void>) => {
    // One signal for all requests of a write: who loses the fence and gets it again may have written something newer.
    const signal = fence?.signal();
    const ask = (request: KubeRequest) => askRetrying(signal ? { ...request, signal } : request, retrying);
    try {
      signal?.throwIfAborted();
      await act({ read, arrivals, applied, ask });
    } catch (failure) {
      if (!signal?.aborted) throw writeError(ref, doing, failure);
      const why = 'this process does not lead (any more)';
      throw new ResourceError('Unavailable', `${wordsFor(ref)}: ${doing} failed: ${why}`);
    }
  };
  return {
    replaceStatus: (object, status) =>
      write(refTo(object), 'writing its status', deps => replaceStatus(deps, object, status)),
    addFinalizer: (object, finalizer) =>
      write(refTo(object), 'adding a finalizer', deps => editFinalizers(deps, object, adding(finalizer))),
    removeFinalizer: (object, finalizer) =>
      write(refTo(object), 'removing a finalizer', deps => editFinalizers(deps, object, removing(finalizer))),
    apply: object => write(refTo(object), 'applying it', deps => applyOwned(deps, object)),
    remove: ref => write(ref, 'deleting it', deps => removeOwned(deps, ref)),
  };
}
