import type { Ref } from '../../api/key.ts';
import { ResourceError } from '../../store/resources.ts';
import { KubeError } from '../transport/transport.ts';

/** For errors: MeshEndpoints default/web. */
export function describeObject({ kind, namespace, name }: Ref): string {
  return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
}

/** The error for an object that was deleted, perhaps to be created again. */
export function goneError(what: string): ResourceError {
  return new ResourceError('Gone', `${what} does not exist any more`);
}

export function contendedError(ref: Ref): ResourceError {
  return new ResourceError('Unavailable', `${describeObject(ref)} is changed by others continuously`);
}

/** A failed request as ResourceError; other failures are returned unchanged. */
export function requestError(what: string, failure: unknown): unknown {
  if (!(failure instanceof KubeError)) return failure;
  const message = `${what}: ${failure.message}`;
  return new ResourceError(isPermanent(failure) ? 'Refused' : 'Unavailable', message, { cause: failure });
}

/** Whether a retry cannot succeed. */
function isPermanent({ reason, status, message }: KubeError): boolean {
  if (reason === 'Invalid' || reason === 'Forbidden') return true;
  // An API server answers 500 to an unknown field, or one of a wrong type.
  return status === 500 && message.includes('failed to create typed patch object');
}
