import { decode } from '../../api/decode.ts';
import { isEqual } from '../../api/equal.ts';
import type { Ref } from '../../api/key.ts';
import { refTo } from '../../api/references.ts';
import type { Resource } from '../../api/resource.ts';
import { judged } from '../judged.ts';
import { ResourceError } from '../resources.ts';
import type { OwnedResource, WriteResources } from '../resources.ts';
import { pathOf, SERVED } from './kinds.ts';
import type { Fields } from './raw-object.ts';
import { applyWords } from './write-apply.ts';
import { contendedError, wordsFor } from './write-error.ts';
import { failedFor, lookAt, MOST_ATTEMPTS, Said, seenIn, takeAnswer } from './write-ports.ts';
import type { WritePorts } from './write-ports.ts';
import { deleting, patching } from './write-request.ts';

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

/** Makes objects that are ours alone be as they are to be. */
export function ownedWriter(ports: WritePorts): WriteResources['apply'] {
  const said = new Said(ports.read);
  return async object => {
    const wanted = judgedAs(object);
    const ref = refTo(wanted);
    const words = wordsOf(object, wanted);
    const known = ports.read.get(ref);
    if (known && (said.has(known, words) || isSame(known, wanted))) return;
    const answer = await applyWhole(ports, ref, words, wanted);
    takeAnswer(ports, answer);
    said.note(ref, answer, words);
  };
}

function judgedAs(object: OwnedResource): Resource {
  try {
    return judged(object);
  } catch (failure) {
    if (!(failure instanceof ResourceError)) throw failure;
    throw new ResourceError(failure.reason, `${wordsFor(refTo(object))}: ${failure.message}`);
  }
}

/** All that we say: of a kind of ours as it would be stored, since a server fails at fields that it does not know. */
function wordsOf({ apiVersion, kind, metadata, spec }: OwnedResource, wanted: Resource) {
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

async function applyWhole(ports: WritePorts, ref: Ref, words: Fields, wanted: Resource): Promise<unknown> {
  const path = pathOf(ref, wanted.apiVersion.slice(wanted.apiVersion.lastIndexOf('/') + 1));
  const spec = specOf(wanted);
  for (let attempts = 1; attempts <= MOST_ATTEMPTS; attempts++) {
    const answer = await applyWords(ports, path, words);
    if (!spec || !hasMore(answer, spec)) return answer;
    const bare = await withoutMore(ports, path, answer, spec);
    if (bare !== undefined) return bare;
  }
  throw contendedError(ref);
}

/** Whether there is more in a spec than we said. */
function hasMore(answer: unknown, spec: object): boolean {
  const decoding = decode(answer);
  return decoding.is === 'resource' && !isEqual(specOf(decoding.resource), spec);
}

/** Takes out of a spec what we did not say; nothing where somebody was faster. All that we say of it stays ours. */
async function withoutMore(ports: WritePorts, path: string, answer: unknown, spec: object): Promise<unknown> {
  try {
    const steps = [
      { op: 'test', path: '/metadata/resourceVersion', value: seenIn(answer).version },
      { op: 'replace', path: '/spec', value: spec },
    ] as const;
    return await ports.ask(patching(path, steps));
  } catch (failure) {
    if (failedFor(failure, 'Conflict', 'Invalid', 'NotFound')) return undefined;
    throw failure;
  }
}

/** Removes an object that is ours alone: the one that is known by its name, and none that comes after it. */
export async function removeOwned(ports: WritePorts, ref: Ref): Promise<void> {
  const found = await find(ports, ref);
  if (!found) return;
  for (let attempts = 1; attempts <= MOST_ATTEMPTS; attempts++) {
    try {
      const answer = await ports.ask(deleting(found.path, found.uid));
      takeAnswer(ports, answer);
      return;
    } catch (failure) {
      if (failedFor(failure, 'NotFound')) return;
      if (!failedFor(failure, 'Conflict')) throw failure;
      if ((await lookAt(ports, found.path))?.uid !== found.uid) return;
    }
  }
  throw contendedError(ref);
}

type Found = { readonly path: string; readonly uid: string };

/** An object as the store has it, or else the server, in the first of its versions that is served. */
async function find(ports: WritePorts, ref: Ref): Promise<Found | undefined> {
  const known = ports.read.get(ref);
  if (known?.metadata.uid !== undefined) {
    const version = known.apiVersion.slice(known.apiVersion.lastIndexOf('/') + 1);
    return { path: pathOf(ref, version), uid: known.metadata.uid };
  }
  for (const version of SERVED[ref.kind].versions) {
    const path = pathOf(ref, version);
    const seen = await lookAt(ports, path);
    if (seen) return { path, uid: seen.uid };
  }
  return undefined;
}
