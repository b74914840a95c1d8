import { inSeconds } from '../api/clock.ts';
import { decode } from '../api/objects/decode.ts';
import { isEqual } from '../api/json.ts';
import { formatFault } from '../api/validation/fault.ts';
import type { ObjectMeta } from '../api/generated/types.ts';
import { keyOf } from '../api/key.ts';
import type { Key, Ref } from '../api/key.ts';
import { refTo } from '../api/objects/references.ts';
import type { Resource } from '../api/objects/resource.ts';
import { validate } from '../api/validation/validate.ts';
import { ResourceError } from './resources.ts';
import type { OwnResource, WriteResources } from './resources.ts';
import type { ResourceStore } from './store.ts';

type LifecycleDeps = { readonly now: () => Date; readonly newUid: (key: Key) => string };

/**
 * Gives the objects of a store the lifecycle that an API server would: their declarations have names, labels, annotations,
 * owners and spec; uid, generation, resourceVersion, finalizers and status are added here.
 */
export class ObjectLifecycle {
  readonly #store: ResourceStore;
  readonly #deps: LifecycleDeps;

  constructor(store: ResourceStore, deps: LifecycleDeps) {
    this.#store = store;
    this.#deps = deps;
  }

  /** Creates or updates an object. */
  put(declared: Resource, isInInitialList = false): void {
    const existing = this.#store.get(refTo(declared));
    this.#store.put(existing ? revise(existing, declared) : this.#create(declared), isInInitialList);
  }

  /** Deletes an object, or sets its deletionTimestamp and a new generation while it has finalizers. */
  remove(ref: Ref, isInInitialList = false): void {
    const existing = this.#store.get(ref);
    if (!existing || isBeingDeleted(existing)) return;
    if (!metadataOf(existing).finalizers?.length) {
      this.#store.remove(ref, isInInitialList);
      return;
    }
    const generation = (metadataOf(existing).generation ?? 0) + 1;
    const deletionTimestamp = inSeconds(this.#deps.now());
    this.#store.put(withMetadata(existing, { deletionTimestamp, generation }), isInInitialList);
  }

  /** Writes to an object that was read; they fail with Gone where the stored object has another uid. */
  readonly writes: Omit<WriteResources, 'apply' | 'remove'> = {
    replaceStatus: (object, status) =>
      promised(() => this.#store.put(withStatus(this.#current(object), object, status))),
    addFinalizer: (object, finalizer) =>
      promised(() => this.#store.put(withFinalizer(this.#current(object), finalizer))),
    removeFinalizer: (object, finalizer) =>
      promised(() => {
        const next = withoutFinalizer(this.#current(object), finalizer);
        if (next) this.#store.put(next);
        else this.#store.remove(refTo(object));
      }),
    removeAnnotation: (object, annotation) =>
      promised(() => this.#store.put(withoutAnnotation(this.#current(object), annotation))),
  };

  #current(object: OwnResource): Resource {
    const existing = this.#store.get(refTo(object));
    if (existing && metadataOf(existing).uid === object.metadata.uid) return existing;
    throw new ResourceError('Gone', `${keyOf(refTo(object))} does not exist any more`);
  }

  #create(declared: Resource): Resource {
    const own = 'spec' in declared ? { creationTimestamp: inSeconds(this.#deps.now()) } : {};
    const uid = this.#deps.newUid(keyOf(refTo(declared)));
    const added = { uid, generation: 1, resourceVersion: firstVersion(uid), ...own };
    return assembled(declared, { ...declaredOf(metadataOf(declared)), ...added }, undefined);
  }
}

/** Runs a function at once; the promise rejects where it throws. */
export function promised(act: () => unknown): Promise<void> {
  return new Promise(resolve => {
    act();
    resolve();
  });
}

/** The object as an API server would store it, with defaults; fails with Refused where it would not. */
export function admit(value: unknown, defaultNamespace?: string): Resource {
  const decoding = decode(value, defaultNamespace);
  switch (decoding.is) {
    case 'resource':
      return decoding.resource;
    case 'faulty':
      throw new ResourceError('Refused', decoding.faults.map(formatFault).join('; '));
    case 'foreign':
      throw new ResourceError(
        'Refused',
        `${decoding.kind} of ${decoding.apiVersion} is not a kind that is read`,
      );
  }
}

/** Whether an object has a deletionTimestamp. */
export function isBeingDeleted(object: Resource): boolean {
  return metadataOf(object).deletionTimestamp !== undefined;
}

function revise(existing: Resource, declared: Resource): Resource {
  const old = metadataOf(existing);
  const isSameSpec = isEqual(bodyOf(existing), bodyOf(declared));
  const isSame =
    isSameSpec &&
    existing.apiVersion === declared.apiVersion &&
    isEqual(declaredOf(old), declaredOf(metadataOf(declared)));
  if (isSame) return existing;
  const generation = (old.generation ?? 0) + (isSameSpec ? 0 : 1);
  const metadata = { ...addedTo(old), ...declaredOf(metadataOf(declared)), generation, ...nextVersion(old) };
  return assembled(declared, metadata, statusOf(existing));
}

/** The object with another status, which is validated. */
function withStatus(existing: Resource, { kind }: OwnResource, status: unknown): Resource {
  const verdict = validate(kind, { ...existing, status });
  if (!verdict.valid) throw new ResourceError('Refused', verdict.faults.map(formatFault).join('; '));
  const valid = verdict.object.status;
  if (isEqual(statusOf(existing), valid)) return existing;
  const metadata = { ...metadataOf(existing), ...nextVersion(metadataOf(existing)) };
  return assembled(existing, metadata, valid);
}

function withFinalizer(existing: Resource, finalizer: string): Resource {
  const { finalizers = [] } = metadataOf(existing);
  if (finalizers.includes(finalizer)) return existing;
  if (isBeingDeleted(existing)) throw new ResourceError('Refused', 'the object is being deleted');
  return withMetadata(existing, { finalizers: [...finalizers, finalizer] });
}

function withoutAnnotation(existing: Resource, annotation: string): Resource {
  const { [annotation]: removed, ...annotations } = metadataOf(existing).annotations ?? {};
  return removed === undefined ? existing : withMetadata(existing, { annotations });
}

/** The object without a finalizer; undefined where it is being deleted and that was its last one. */
function withoutFinalizer(existing: Resource, finalizer: string): Resource | undefined {
  const { finalizers = [] } = metadataOf(existing);
  if (!finalizers.includes(finalizer)) return existing;
  const rest = finalizers.filter(name => name !== finalizer);
  if (rest.length === 0 && isBeingDeleted(existing)) return undefined;
  return withMetadata(existing, { finalizers: rest.length === 0 ? undefined : rest });
}

function withMetadata(
  existing: Resource,
  change: { readonly [K in keyof ObjectMeta]?: ObjectMeta[K] | undefined },
): Resource {
  const old = metadataOf(existing);
  return assembled(existing, present({ ...old, ...change, ...nextVersion(old) }), statusOf(existing));
}

/** The kinds of other groups have fewer fields, of the same types. */
function metadataOf(object: Resource): ObjectMeta {
  return object.metadata;
}

/** The metadata that declarations set. */
function declaredOf({ name, namespace, labels, annotations, ownerReferences }: ObjectMeta) {
  return present({ name, namespace, labels, annotations, ownerReferences });
}

/** The metadata that is added here, but for generation and resourceVersion. */
function addedTo({ uid, creationTimestamp, deletionTimestamp, finalizers }: ObjectMeta) {
  return present({ uid, creationTimestamp, deletionTimestamp, finalizers });
}

/** The fields whose change increments the generation. */
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

/** Derived from the uid, so that an object that is created again never repeats a resourceVersion. */
function firstVersion(uid: string): string {
  const digits = uid.replaceAll(/[^0-9a-f]/gi, '').slice(0, 12);
  return String(Number.parseInt(`1${digits}`, 16));
}

function nextVersion({ resourceVersion = '0' }: ObjectMeta) {
  return { resourceVersion: String(Number(resourceVersion) + 1) };
}

/** The fields that are not undefined. */
function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
