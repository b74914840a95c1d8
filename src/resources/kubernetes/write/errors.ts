import type { Ref } from '../../../api/key.ts';
import { ResourceError } from '../../resources.ts';
import { KubeError } from '../kube-error.ts';

/** An object in words: MeshEndpoints default/web. */
export function wordsFor({ kind, namespace, name }: Ref): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

/** An object that was read does not exist any more, or another one has its name. */
export function goneError(ref: Ref): ResourceError {
  return new ResourceError('Gone', `${wordsFor(ref)} does not exist any more`);
}

/** A write that does not succeed, because others write the same object all the time. */
export function contendedError(ref: Ref): ResourceError {
  return new ResourceError('Unavailable', `${wordsFor(ref)} is changed by others all the time`);
}

/** What a failure means for whoever wanted to write an object; what is no KubeError stays as it is. */
export function writeError(ref: Ref, doing: string, failure: unknown): unknown {
  if (!(failure instanceof KubeError)) return failure;
  const message = `${wordsFor(ref)}: ${doing} failed: ${failure.message}`;
  return new ResourceError(isRefusal(failure) ? 'Refused' : 'Unavailable', message, { cause: failure });
}

/** Whether a server will never do what it was asked, unless somebody changes something. */
function isRefusal({ reason, status, message }: KubeError): boolean {
  if (reason === 'Invalid' || reason === 'Forbidden') return true;
  // An API server takes a field that it does not know, or that has a wrong type, for a failure of its own.
  return status === 500 && message.includes('failed to create typed patch object');
}
