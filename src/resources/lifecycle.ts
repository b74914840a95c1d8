import { isEqual } from '../api/equal.ts';
import { formatFault } from '../api/fault.ts';
import type { ObjectMeta } from '../api/generated/types.ts';
import type { Resource } from '../api/resource.ts';
import { validate } from '../api/validate.ts';
import { ResourceError } from './resources.ts';
import type { OwnResource } from './resources.ts';

/** Who says that an object is to be: a file of the user, or we ourselves. */
type Origin = { readonly by: 'file'; readonly file: string } | { readonly by: 'us' };

/** What is to be, as somebody says: only names, labels, annotations, owners and what is beside metadata count. */
export type Definition = { readonly object: Resource; readonly from: Origin };

/** What is, as it is read and kept: with all that an API server would add. */
export type Kept = { readonly object: Resource; readonly from: Origin };

/** What cannot be computed. */
export type Given = { readonly now: () => Date; readonly newUid: () => string };

/*
 * What becomes of an object, by what is kept of it and what is said of it:
 *
 *   kept \ said        nothing                                 something
 *   nothing            nothing                                 it begins, with a new uid
 *   from a file        it vanishes, or waits for finalizers    it is revised
 *   being deleted      it waits for finalizers                 it waits for finalizers
 *   ours               it stays                                it stays
 */

/** What is to be kept of an object after another look at what is said of it. */
export function reconcile(
  kept: Kept | undefined,
  said: Definition | undefined,
  given: Given,
): Kept | undefined {
  if (!kept) return said && begin(said, given);
  if (kept.from.by === 'us') return kept;
  if (!said) return vanish(kept, given);
  return isBeingDeleted(kept) ? kept : revise(kept, said);
}

/** A new object. */
export function begin({ object, from }: Definition, given: Given): Kept {
  const own = 'spec' in object ? { creationTimestamp: inSeconds(given.now()) } : {};
  const uid = given.newUid();
  const metadata = {
    ...saidOf(metadataOf(object)),
    uid,
    generation: 1,
    resourceVersion: firstVersion(uid),
  };
  return { from, object: assembled(object, { ...metadata, ...own }, undefined) };
}

/** The same object, as it is said to be now. */
export function revise(kept: Kept, { object, from }: Definition): Kept {
  const old = metadataOf(kept.object);
  const isSameSpec = isEqual(bodyOf(kept.object), bodyOf(object));
  const isSame =
    isSameSpec &&
    kept.object.apiVersion === object.apiVersion &&
    isEqual(saidOf(old), saidOf(metadataOf(object)));
  if (isSame) return isEqual(kept.from, from) ? kept : { ...kept, from };
  const generation = (old.generation ?? 0) + (isSameSpec ? 0 : 1);
  const metadata = { ...addedTo(old), ...saidOf(metadataOf(object)), generation, ...nextVersion(old) };
  return { from, object: assembled(object, metadata, statusOf(kept.object)) };
}

/** An object that is to go: nothing, or one that waits for its finalizers, which is a new generation of it. */
export function vanish(kept: Kept, { now }: Given): Kept | undefined {
  if (!metadataOf(kept.object).finalizers?.length) return undefined;
  if (isBeingDeleted(kept)) return kept;
  const generation = (metadataOf(kept.object).generation ?? 0) + 1;
  return withMetadata(kept, { deletionTimestamp: inSeconds(now()), generation });
}

/** The same object with another status, judged as the API server would. */
export function withStatus(kept: Kept, object: OwnResource, status: unknown): Kept {
  const verdict = validate(object.kind, { ...kept.object, status });
  if (!verdict.valid) throw new ResourceError('Refused', verdict.faults.map(formatFault).join('; '));
  const judged = verdict.object.status;
  if (isEqual(statusOf(kept.object), judged)) return kept;
  const metadata = { ...metadataOf(kept.object), ...nextVersion(metadataOf(kept.object)) };
  return { ...kept, object: assembled(kept.object, metadata, judged) };
}

/** The same object, held by a finalizer. */
export function withFinalizer(kept: Kept, finalizer: string): Kept {
  const { finalizers = [] } = metadataOf(kept.object);
  if (finalizers.includes(finalizer)) return kept;
  if (isBeingDeleted(kept)) throw new ResourceError('Refused', 'the object is being deleted');
  return withMetadata(kept, { finalizers: [...finalizers, finalizer] });
}

/** The same object without a finalizer, or nothing where that was the last that held it. */
export function withoutFinalizer(kept: Kept, finalizer: string): Kept | undefined {
  const { finalizers = [] } = metadataOf(kept.object);
  if (!finalizers.includes(finalizer)) return kept;
  const rest = finalizers.filter(name => name !== finalizer);
  if (rest.length === 0 && isBeingDeleted(kept)) return undefined;
  return withMetadata(kept, { finalizers: rest.length === 0 ? undefined : rest });
}

/** Whether an object only waits for its finalizers. */
function isBeingDeleted({ object }: Kept): boolean {
  return metadataOf(object).deletionTimestamp !== undefined;
}

/** The uid of an object. */
export function uidOf({ object }: Kept): string | undefined {
  return metadataOf(object).uid;
}

function withMetadata(
  kept: Kept,
  change: { readonly [K in keyof ObjectMeta]?: ObjectMeta[K] | undefined },
): Kept {
  const old = metadataOf(kept.object);
  const metadata = present({ ...old, ...change, ...nextVersion(old) });
  return { ...kept, object: { ...kept.object, metadata } };
}

/** Of objects that are not ours, fewer fields are kept; what is there has the same meaning. */
function metadataOf(object: Resource): ObjectMeta {
  return object.metadata;
}

/** What users decide of metadata. */
function saidOf({ name, namespace, labels, annotations, ownerReferences }: ObjectMeta) {
  return present({ name, namespace, labels, annotations, ownerReferences });
}

/** What is added to it. */
function addedTo({ uid, creationTimestamp, deletionTimestamp, finalizers }: ObjectMeta) {
  return present({ uid, creationTimestamp, deletionTimestamp, finalizers });
}

/** Everything but the version, metadata and status: what a change of raises the generation. */
function bodyOf(object: Resource): object {
  const { apiVersion: _version, metadata: _metadata, ...rest } = object;
  return { ...rest, status: undefined };
}

function statusOf(object: Resource): unknown {
  return 'status' in object ? object.status : undefined;
}

function assembled(object: Resource, metadata: object, status: unknown): Resource {
  return present({ ...object, metadata, status }) as unknown as Resource;
}

/** Follows from the uid, so that no version of an object comes again in another of its name. */
function firstVersion(uid: string): string {
  const digits = uid.replaceAll(/[^0-9a-f]/gi, '').slice(0, 12);
  return String(Number.parseInt(`1${digits}`, 16));
}

function nextVersion({ resourceVersion = '0' }: ObjectMeta) {
  return { resourceVersion: String(Number(resourceVersion) + 1) };
}

/** The fields that have a value. */
function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** Times have no fractions in an API server. */
function inSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
