import type { Ref } from '../../api/key.ts';
import { ResourceError } from '../resources.ts';
import { KubeError } from './kube-error.ts';
import { isRefusal } from './write-refusal.ts';

/** An object in words: MeshEndpoints default/web. */
export function wordsFor({ kind, namespace, name }: Ref): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

/** An object that was read is not there any more, or is another one by now. */
export function goneError(ref: Ref): ResourceError {
  return new ResourceError('Gone', `${wordsFor(ref)} is not there any more`);
}

/** A write that does not come through, because others write the same object all the time. */
export function contendedError(ref: Ref): ResourceError {
  return new ResourceError('Unavailable', `${wordsFor(ref)} is changed by others all the time`);
}

/** What a failure means for whoever wanted to write an object; what is no KubeError stays as it is. */
export function writeError(ref: Ref, doing: string, failure: unknown): unknown {
  if (!(failure instanceof KubeError)) return failure;
  const message = `${wordsFor(ref)}: ${doing} failed: ${failure.message}`;
  return new ResourceError(isRefusal(failure) ? 'Refused' : 'Unavailable', message, { cause: failure });
}
