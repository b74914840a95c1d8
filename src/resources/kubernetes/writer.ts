import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/references.ts';
import type { ReadResources, WriteResources } from '../resources.ts';
import type { TakeAnswers } from './arrivals.ts';
import type { KubeRequest } from './transport.ts';
import { askAgain } from './write-again.ts';
import type { Asking } from './write-again.ts';
import { writeError } from './write-error.ts';
import { adding, editFinalizers, removing } from './write-finalizer.ts';
import { ownedWriter, removeOwned } from './write-owned.ts';
import { statusWriter } from './write-status.ts';

/** What writes to an API server work with. */
export type WriterPorts = Asking & {
  /** Of the store that is filled from the same server; objects to write come from it. */
  readonly read: Pick<ReadResources, 'get'>;
  /** Puts what the server answers into that store, so that what was written is read from then on. */
  readonly arrivals: TakeAnswers;
};

/**
 * Writes to an API server: what we say is ours, by server-side apply, and what others say stays theirs. Nothing is
 * sent where what is to be written is there already, as far as the store knows.
 */
export function writesTo({ read, arrivals, ...asking }: WriterPorts): WriteResources {
  const ports = { read, arrivals, ask: (request: KubeRequest) => askAgain(request, asking) };
  const replaceStatus = statusWriter(ports);
  const apply = ownedWriter(ports);
  return {
    replaceStatus: (object, status) =>
      told(refTo(object), 'writing its status', () => replaceStatus(object, status)),
    addFinalizer: (object, finalizer) =>
      told(refTo(object), 'adding a finalizer', () => editFinalizers(ports, object, adding(finalizer))),
    removeFinalizer: (object, finalizer) =>
      told(refTo(object), 'removing a finalizer', () => editFinalizers(ports, object, removing(finalizer))),
    apply: object => told(refTo(object), 'applying it', () => apply(object)),
    remove: ref => told(ref, 'deleting it', () => removeOwned(ports, ref)),
  };
}

/** Does something to an object, and tells a failure in the words of whoever writes. */
async function told(ref: Ref, doing: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (failure) {
    throw writeError(ref, doing, failure);
  }
}
