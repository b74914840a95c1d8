import { isEqual } from '../../api/json.ts';
import { VERSION } from '../../api/generated/kinds.ts';
import type { KindName } from '../../api/generated/kinds.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import type { OwnResource } from '../../store/resources.ts';
import { pathOf } from '../served-kinds.ts';
import { contendedError, goneError, describeObject } from './errors.ts';
import { applyCustomResource, failedWith, getLive, MAX_ATTEMPTS, putResponse } from './requests.ts';
import type { WriteDeps } from './requests.ts';

/**
 * Writes a status by server-side apply. An API server ignores the uid there, and would write the status of an object that
 * was deleted and created again. So the request names the resourceVersion of the object that was read.
 */
export async function replaceStatus<T extends OwnResource>(
  deps: WriteDeps,
  object: T,
  status: NonNullable<T['status']>,
): Promise<void> {
  const ref = refTo<KindName>(object);
  const stored = sameObject(object, deps.read.get(ref));
  const known = stored ?? object;
  const hasStatus = ({ status: current }: OwnResource) => isEqual(current ?? {}, status);
  if (stored && (hasStatus(stored) || deps.applied.has(stored, status))) return;
  const response = await applyStatus(deps, ref, known, status);
  putResponse(deps, response);
  deps.applied.note(ref, response, status, hasStatus);
}

/** The stored object, if it has the uid of the given one. */
export function sameObject(object: OwnResource, stored: OwnResource | undefined): OwnResource | undefined {
  return stored?.metadata.uid === object.metadata.uid ? stored : undefined;
}

async function applyStatus(
  deps: WriteDeps,
  ref: Ref,
  { apiVersion, kind, metadata }: OwnResource,
  status: unknown,
): Promise<unknown> {
  const path = pathOf(ref, VERSION);
  const { name, namespace, uid } = metadata;
  let { resourceVersion } = metadata;
  // While an empty status exists, an API server refuses other managers that remove theirs.
  const fields = isEqual(status, {}) ? {} : { status };
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    try {
      const value = { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion }, ...fields };
      return await applyCustomResource(deps.send, `${path}/status`, value);
    } catch (failure) {
      if (failedWith(failure, 'NotFound')) throw goneError(describeObject(ref));
      if (!failedWith(failure, 'Conflict')) throw failure;
      const seen = await getLive(deps, path);
      if (seen?.uid !== uid) throw goneError(describeObject(ref));
      resourceVersion = seen?.version;
    }
  }
  throw contendedError(ref);
}
