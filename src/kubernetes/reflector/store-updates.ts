import { decode } from '../../api/objects/decode.ts';
import type { Decoding } from '../../api/objects/decode.ts';
import { formatFault } from '../../api/validation/fault.ts';
import type { Key, Ref, ResourceKind } from '../../api/key.ts';
import { keyOf } from '../../api/key.ts';
import { refTo } from '../../api/objects/references.ts';
import type { Resource } from '../../api/objects/resource.ts';
import type { ResourceStore } from '../../store/store.ts';
import { fieldsOf, identityOf, isOlder, textIn, withoutUnusedMetadata } from '../unstructured.ts';
import type { ObjectIdentity } from '../unstructured.ts';

/** An object that the API server stores and our validator does not accept. */
export type Undecodable = {
  readonly ref: Ref;
  readonly version: string;
  readonly faults: readonly string[];
};

type UpdateDeps = {
  readonly store: ResourceStore;
  /** Called with each object that cannot be decoded, once for each of its versions. */
  readonly reportUndecodable: (object: Undecodable) => void;
};

/*
 * Objects arrive in lists, watch events and responses to our own writes, in any order. The resourceVersions of all
 * objects of a kind come from one counter, so the greater one is newer:
 *
 *   arrives            with a version           then it is
 *   in any way         older than the stored    ignored
 *   in any way         equal to the stored      ignored, without decoding it
 *   as a deletion      older than the stored    ignored: the object was created again
 *   as a response      seen by the watch        ignored: if it is not stored, it has been deleted
 *   absent in a list   newer than the list      kept: the response to a write was faster
 *   absent in a list   any other                removed
 *
 * A list that is older than the last watch event comes from a server that was restored from a backup. It replaces all.
 */

/** Applies updates of one kind to the store, in any order of their arrival. */
export class KindUpdates {
  readonly #kind: ResourceKind;
  readonly #deps: UpdateDeps;
  readonly #listed = new Set<Key>();
  readonly #undecodable = new Map<Key, string>();
  /** All changes up to this version have been applied. */
  #observedVersion = '';
  #isRestored = false;

  constructor(kind: ResourceKind, deps: UpdateDeps) {
    this.#kind = kind;
    this.#deps = deps;
  }

  get undecodable(): number {
    return this.#undecodable.size;
  }

  beginList(version: string): void {
    this.#listed.clear();
    this.#isRestored = isOlder(version, this.#observedVersion);
  }

  addListed(raw: unknown, isInInitialList: boolean): void {
    const identity = identityOf(this.#kind, raw);
    if (identity) this.#listed.add(keyOf(identity.ref));
    this.#put(raw, identity, isInInitialList, this.#isRestored);
  }

  /** Removes the objects that the list did not contain. */
  endList(version: string, isInInitialList: boolean): void {
    const { store } = this.#deps;
    for (const object of store.list(this.#kind)) {
      const ref = refTo<ResourceKind>(object);
      const isNewer = isOlder(version, object.metadata.resourceVersion ?? '');
      if (this.#listed.has(keyOf(ref)) || (isNewer && !this.#isRestored)) continue;
      store.remove(ref, isInInitialList);
    }
    for (const key of this.#undecodable.keys()) if (!this.#listed.has(key)) this.#undecodable.delete(key);
    this.#listed.clear();
    this.#observedVersion = version;
    this.#isRestored = false;
  }

  applyWatchEvent(raw: unknown, change: 'put' | 'remove', version: string): void {
    const identity = identityOf(this.#kind, raw);
    if (change === 'put') this.#put(raw, identity, false, false);
    else if (identity) this.#remove(identity);
    this.noteVersion(version);
  }

  noteVersion(version: string): void {
    if (version !== '') this.#observedVersion = version;
  }

  /** Stores the object in the response to a write. */
  applyResponse(raw: unknown): void {
    const identity = identityOf(this.#kind, raw);
    if (
      identity &&
      (isOlder(identity.version, this.#observedVersion) || identity.version === this.#observedVersion)
    )
      return;
    this.#put(raw, identity, false, false);
  }

  removeAll(): void {
    this.#undecodable.clear();
    this.#listed.clear();
    this.#deps.store.replaceAll(this.#kind, []);
  }

  #remove({ ref, version }: ObjectIdentity): void {
    const known = this.#deps.store.get(ref);
    if (!isOlder(version, this.#undecodable.get(keyOf(ref)) ?? '')) this.#undecodable.delete(keyOf(ref));
    if (!known || isOlder(version, known.metadata.resourceVersion ?? '')) return;
    this.#deps.store.remove(ref);
  }

  #put(
    raw: unknown,
    identity: ObjectIdentity | undefined,
    isInInitialList: boolean,
    isForced: boolean,
  ): void {
    const { store } = this.#deps;
    const version = identity?.version ?? '';
    const known = identity && store.get(identity.ref);
    if (known && !isForced) {
      const { uid, resourceVersion = '' } = known.metadata;
      if (isOlder(version, resourceVersion)) return;
      if (version !== '' && version === resourceVersion && uid === identity.uid) return;
    }
    const refused = identity && this.#undecodable.get(keyOf(identity.ref));
    if (refused !== undefined && (refused === version || (isOlder(version, refused) && !isForced))) return;
    const resource = this.#decode(raw, identity);
    if (resource) {
      if (identity) this.#undecodable.delete(keyOf(identity.ref));
      store.put(resource, isInInitialList);
    } else if (known && known.metadata.uid !== identity.uid) {
      store.remove(refTo<ResourceKind>(known), isInInitialList);
    }
  }

  /** Undefined where the object cannot be decoded, which is reported. */
  #decode(raw: unknown, identity: ObjectIdentity | undefined): Resource | undefined {
    const { ref, version } = identity ?? { ref: { kind: this.#kind, namespace: '', name: '' }, version: '' };
    const key = keyOf(ref);
    const decoding = decoded(raw);
    if (decoding.is === 'resource' && keyOf(refTo(decoding.resource)) === key) return decoding.resource;
    if (identity) this.#undecodable.set(key, version);
    this.#deps.reportUndecodable({ ref, version, faults: faultsOf(decoding) });
    return undefined;
  }
}

function decoded(raw: unknown): Decoding {
  const fields = fieldsOf(raw);
  return decode(fields ? withoutUnusedMetadata(fields) : raw);
}

function faultsOf(decoding: Decoding): readonly string[] {
  switch (decoding.is) {
    case 'faulty':
      return decoding.faults.map(formatFault);
    case 'foreign':
      return [`is ${decoding.kind} of ${decoding.apiVersion}`];
    case 'resource':
      return [`is ${keyOf(refTo(decoding.resource))}`];
  }
}

/** Stores the objects in responses to writes, so that a write can be read at once. */
export type PutResponses = {
  /**
   * Stores an object as the server sent it, unless the store has a newer version or a later watch event deleted it.
   * Objects of other kinds are ignored.
   */
  readonly put: (raw: unknown) => void;
};

export type StoreUpdates = PutResponses & {
  readonly of: (kind: ResourceKind) => KindUpdates;
};

export function createStoreUpdates(kinds: readonly ResourceKind[], deps: UpdateDeps): StoreUpdates {
  const all = new Map<string, KindUpdates>(kinds.map(kind => [kind, new KindUpdates(kind, deps)]));
  return {
    of: kind => {
      const found = all.get(kind);
      if (!found) throw new Error(`${kind} is not among the kinds that are read`);
      return found;
    },
    put: raw => all.get(textIn(fieldsOf(raw), 'kind'))?.applyResponse(raw),
  };
}
