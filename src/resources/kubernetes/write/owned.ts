import { decode } from '../../../api/decode.ts';
import { isEqual } from '../../../api/json.ts';
import type { Ref } from '../../../api/key.ts';
import { refTo } from '../../../api/references.ts';
import type { Resource } from '../../../api/resource.ts';
import { judged } from '../../lifecycle.ts';
import { ResourceError } from '../../resources.ts';
import type { OwnedResource } from '../../resources.ts';
import { pathOf, SERVED } from '../served-kinds.ts';
import type { Fields } from '../unstructured.ts';
import { contendedError, wordsFor } from './errors.ts';
import {
  apply,
  deleteRequest,
  failedFor,
  getLive,
  MAX_ATTEMPTS,
  patchRequest,
  seenIn,
  takeAnswer,
} from './requests.ts';
import type { WriteDeps } from './requests.ts';

/*
 * An object that is ours alone, by what is there and who said it:
 *
 *   field                       what apply does
 *   we say it                   it is as we say, whoever else said something else
 *   we said it, and no longer   it goes
 *   spec, others added it       it goes, where the kind is ours: what is in a spec has a meaning
 *   labels, others added them   they stay: tools of others mark what they keep track of
 *
 * Of kinds of others we do not know what belongs to them by default, so that there nothing is taken out of a spec.
 */

/** Makes an object that is ours alone be as it is to be. */
export async function applyOwned(deps: WriteDeps, object: OwnedResource): Promise<void> {
  const wanted = judgedAs(object);
  const ref = refTo(wanted);
  const value = fieldsToApply(object, wanted);
  const known = deps.read.get(ref);
  if (known && (deps.applied.has(known, value) || isSame(known, wanted))) return;
  const answer = await applyWhole(deps, ref, value, wanted);
  takeAnswer(deps, answer);
  deps.applied.note(ref, answer, value);
}

function judgedAs(object: OwnedResource): Resource {
  try {
    return judged(object);
  } catch (failure) {
    if (!(failure instanceof ResourceError)) throw failure;
    throw new ResourceError(failure.reason, `${wordsFor(refTo(object))}: ${failure.message}`);
  }
}

/** All of our fields: of a kind of ours as it would be stored, since a server fails at fields that it does not know. */
function fieldsToApply({ apiVersion, kind, metadata, spec }: OwnedResource, wanted: Resource) {
  const { name, namespace } = wanted.metadata;
  const { labels } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, labels }, spec: specOf(wanted) ?? spec };
}

/** The spec of a kind that is read whole: of one of ours. */
function specOf(object: Resource): object | undefined {
  return 'spec' in object ? object.spec : undefined;
}

function isSame(known: Resource, wanted: Resource): boolean {
  const spec = specOf(wanted);
  if (!spec || !isEqual(specOf(known), spec)) return false;
  return isEqual(known.metadata.labels ?? {}, wanted.metadata.labels ?? {});
}

async function applyWhole(deps: WriteDeps, ref: Ref, value: Fields, wanted: Resource): Promise<unknown> {
  const path = pathOf(ref, wanted.apiVersion.slice(wanted.apiVersion.lastIndexOf('/') + 1));
  const spec = specOf(wanted);
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    const answer = await apply(deps, path, value);
    if (!spec || !hasMore(answer, spec)) return answer;
    const bare = await withoutMore(deps, path, answer, spec);
    if (bare !== undefined) return bare;
  }
  throw contendedError(ref);
}

/** Whether there is more in a spec than we applied. */
function hasMore(answer: unknown, spec: object): boolean {
  const decoding = decode(answer);
  return decoding.is === 'resource' && !isEqual(specOf(decoding.resource), spec);
}

/** Takes out of a spec what we did not say; nothing where somebody was faster. All that we say of it stays ours. */
async function withoutMore(deps: WriteDeps, path: string, answer: unknown, spec: object): Promise<unknown> {
  try {
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: seenIn(answer).version },
      { op: 'replace', path: '/spec', value: spec },
    ] as const;
    return await deps.ask(patchRequest(path, steps));
  } catch (failure) {
    if (failedFor(failure, 'Conflict', 'Invalid', 'NotFound')) return undefined;
    throw failure;
  }
}

/** Removes an object that is ours alone: the one that is known by its name, and none that comes after it. */
export async function removeOwned(deps: WriteDeps, ref: Ref): Promise<void> {
  const found = await find(deps, ref);
  if (!found) return;
  for (let attempts = 1; attempts <= MAX_ATTEMPTS; attempts++) {
    try {
      const answer = await deps.ask(deleteRequest(found.path, found.uid));
      takeAnswer(deps, answer);
      return;
    } catch (failure) {
      if (failedFor(failure, 'NotFound')) return;
      if (!failedFor(failure, 'Conflict')) throw failure;
      if ((await getLive(deps, found.path))?.uid !== found.uid) return;
    }
  }
  throw contendedError(ref);
}

type Found = { readonly path: string; readonly uid: string };

/** An object as the store has it, or else the server, in the first of its versions that is served. */
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
