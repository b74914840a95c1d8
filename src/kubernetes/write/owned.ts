import { decode } from '../../api/objects/decode.ts';
import { isEqual } from '../../api/json.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Resource } from '../../api/objects/resource.ts';
import { admit } from '../../store/lifecycle.ts';
import { ResourceError } from '../../store/resources.ts';
import type { OwnedResource } from '../../store/resources.ts';
import { pathOf, SERVED } from '../served-kinds.ts';
import type { Fields } from '../../api/json.ts';

import { contendedError, describeObject } from './errors.ts';
import {
  applyCustomResource,
  deleteRequest,
  failedWith,
  getLive,
  MAX_ATTEMPTS,
  patchRequest,
  seenIn,
  putResponse,
} from './requests.ts';
import type { WriteDeps } from './requests.ts';

/*
 * An object that we own, by field:
 *
 *   field                        apply
 *   that we set                  sets it, also where another manager owns it
 *   that we set before           removes it
 *   of spec, set by others       removes it, where the kind is ours
 *   of labels, set by others     keeps it: other tools track objects by labels
 *
 * In the spec of other kinds, fields set by others are kept, because they may be defaults.
 */

/** Creates or updates an object that we own. */
export async function applyOwned(deps: WriteDeps, object: OwnedResource): Promise<void> {
  const desired = admitted(object);
  const ref = refTo(desired);
  const value = fieldsToApply(object, desired);
  const known = deps.read.get(ref);
  if (known && (deps.applied.has(known, value) || isSame(known, desired))) return;
  const response = await applyWhole(deps, ref, value, desired);
  putResponse(deps, response);
  deps.applied.note(ref, response, value, stored => isSame(stored, desired));
}

function admitted(object: OwnedResource): Resource {
  try {
    return admit(object);
  } catch (failure) {
    if (!(failure instanceof ResourceError)) throw failure;
    throw new ResourceError(failure.reason, `${describeObject(refTo(object))}: ${failure.message}`);
  }
}

/** Our fields: of our own kinds as they would be stored, because server-side apply fails at unknown fields. */
function fieldsToApply({ apiVersion, kind, metadata, spec }: OwnedResource, desired: Resource) {
  const { name, namespace } = desired.metadata;
  const { labels } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, labels }, spec: specOf(desired) ?? spec };
}

/** Undefined for kinds of which only some fields are read. */
function specOf(object: Resource): object | undefined {
  return 'spec' in object ? object.spec : undefined;
}

function isSame(known: Resource, desired: Resource): boolean {
  const spec = specOf(desired);
  if (!spec || !isEqual(specOf(known), spec)) return false;
  return isEqual(known.metadata.labels ?? {}, desired.metadata.labels ?? {});
}

async function applyWhole(deps: WriteDeps, ref: Ref, value: Fields, desired: Resource): Promise<unknown> {
  const path = pathOf(ref, desired.apiVersion.slice(desired.apiVersion.lastIndexOf('/') + 1));
  const spec = specOf(desired);
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    const response = await applyCustomResource(deps.send, path, value);
    if (!spec || !hasExtraFields(response, spec)) return response;
    const reduced = await removeExtraFields(deps, path, response, spec);
    if (reduced !== undefined) return reduced;
  }
  throw contendedError(ref);
}

function hasExtraFields(response: unknown, spec: object): boolean {
  const decoding = decode(response);
  return decoding.is === 'resource' && !isEqual(specOf(decoding.resource), spec);
}

/** Removes the fields of a spec that we did not set; undefined where another write was faster. */
async function removeExtraFields(
  deps: WriteDeps,
  path: string,
  response: unknown,
  spec: object,
): Promise<unknown> {
  try {
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: seenIn(response).version },
      { op: 'replace', path: '/spec', value: spec },
    ] as const;
    return await deps.send(patchRequest(path, steps));
  } catch (failure) {
    if (failedWith(failure, 'Conflict', 'Invalid', 'NotFound')) return undefined;
    throw failure;
  }
}

/** Deletes an object that we own, by its uid. */
export async function removeOwned(deps: WriteDeps, ref: Ref): Promise<void> {
  const found = await find(deps, ref);
  if (!found) return;
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    try {
      const response = await deps.send(deleteRequest(found.path, found.uid));
      putResponse(deps, response);
      return;
    } catch (failure) {
      if (failedWith(failure, 'NotFound')) return;
      if (!failedWith(failure, 'Conflict')) throw failure;
      if ((await getLive(deps, found.path))?.uid !== found.uid) return;
    }
  }
  throw contendedError(ref);
}

type Found = { readonly path: string; readonly uid: string };

/** Finds an object in the store, or on the server in the first version that is served. */
async function find(deps: WriteDeps, ref: Ref): Promise<Found | undefined> {
  const known = deps.read.get(ref);
  if (known?.metadata.uid !== undefined) {
    const version = known.apiVersion.slice(known.apiVersion.lastIndexOf('/') + 1);
    return { path: pathOf(ref, version), uid: known.metadata.uid };
  }
  for (const version of SERVED[ref.kind].versions) {
    const path = pathOf(ref, version);
    const seen = await getLive(deps, path);
    if (seen) return { path, uid: seen.uid };
  }
  return undefined;
}
