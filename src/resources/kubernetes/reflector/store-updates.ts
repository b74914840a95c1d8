import { decode } from '../../../api/decode.ts';
import type { Decoding } from '../../../api/decode.ts';
import { formatFault } from '../../../api/validation/fault.ts';
import type { Key, Ref, ResourceKind } from '../../../api/key.ts';
import { keyOf } from '../../../api/key.ts';
import { refTo } from '../../../api/references.ts';
import type { Resource } from '../../../api/resource.ts';
import type { Arrival, ResourceStore } from '../../store.ts';
import { fieldsOf, identityOf, isOlder, textIn, withoutBallast } from '../unstructured.ts';
import type { RawIdentity } from '../unstructured.ts';

/** An object that the cluster has and that we cannot read. */
export type Undecodable = {
  readonly ref: Ref;
  readonly version: string;
  readonly faults: readonly string[];
};

/** Where objects go. */
type ArrivalDeps = {
  readonly store: ResourceStore;
  /** Told of each object that cannot be read, once in each of its versions. */
  readonly reportUndecodable: (object: Undecodable) => void;
};

/*
 * An object comes by three ways: lists, watches, and answers to our own writes, and these overtake each other. Versions
 * of one kind come from one counter, whatever object they are of, so the greater one is the later one:
 *
 *   comes        of a version             then it is
 *   any way      older than in the store  left alone
 *   any way      as in the store          left alone, without a look at the rest
 *   deletion     older than in the store  left alone: it was made again
 *   answer       told by the watch        left alone: what is not there has been deleted since
 *   list, whole  (not in it)              removed, unless newer than the list: an answer was faster
 *
 * A list that is older than what a watch has told comes from a server that was set back, and then what it says holds.
 */

/** The objects of one kind on their way into the store. */
export class KindArrivals {
  readonly #kind: ResourceKind;
  readonly #ports: ArrivalDeps;
  readonly #listed = new Set<Key>();
  readonly #undecodable = new Map<Key, string>();
  /** Up to which version everything has been told. */
  #told = '';
  #isSetBack = false;

  constructor(kind: ResourceKind, ports: ArrivalDeps) {
    this.#kind = kind;
    this.#ports = ports;
  }

  /** How many objects cannot be read. */
  get undecodable(): number {
    return this.#undecodable.size;
  }

  /** Begins to hear a list of everything as it was at a version. */
  beginList(version: string): void {
    this.#listed.clear();
    this.#isSetBack = isOlder(version, this.#told);
  }

  list(raw: unknown, arrival: Arrival): void {
    const identity = identityOf(this.#kind, raw);
    if (identity) this.#listed.add(keyOf(identity.ref));
    this.#place(raw, identity, arrival, this.#isSetBack);
  }

  /** Removes what a list did not have that has been heard to its end. */
  endList(version: string, arrival: Arrival): void {
    const { store } = this.#ports;
    for (const object of store.list(this.#kind)) {
      const ref = refTo<ResourceKind>(object);
      const isNewer = isOlder(version, object.metadata.resourceVersion ?? '');
      if (this.#listed.has(keyOf(ref)) || (isNewer && !this.#isSetBack)) continue;
      store.remove(ref, arrival);
    }
    for (const key of this.#undecodable.keys()) if (!this.#listed.has(key)) this.#undecodable.delete(key);
    this.#listed.clear();
    this.#told = version;
    this.#isSetBack = false;
  }

  /** Takes what a watch told of an object, and that it has told everything until then. */
  watch(raw: unknown, change: 'put' | 'remove', version: string): void {
    const identity = identityOf(this.#kind, raw);
    if (change === 'put') this.#place(raw, identity, 'live', false);
    else if (identity) this.#remove(identity);
    this.heardUntil(version);
  }

  /** Notes that everything has been told up to a version. */
  heardUntil(version: string): void {
    if (version !== '') this.#told = version;
  }

  /** Takes what a server answered to a write of ours. */
  answer(raw: unknown): void {
    const identity = identityOf(this.#kind, raw);
    if (identity && (isOlder(identity.version, this.#told) || identity.version === this.#told)) return;
    this.#place(raw, identity, 'live', false);
  }

  /** Removes everything: the kind is not there any more. */
  empty(): void {
    this.#undecodable.clear();
    this.#listed.clear();
    this.#ports.store.replaceAll(this.#kind, []);
  }

  #remove({ ref, version }: RawIdentity): void {
    const known = this.#ports.store.get(ref);
    if (!isOlder(version, this.#undecodable.get(keyOf(ref)) ?? '')) this.#undecodable.delete(keyOf(ref));
    if (!known || isOlder(version, known.metadata.resourceVersion ?? '')) return;
    this.#ports.store.remove(ref);
  }

  #place(raw: unknown, identity: RawIdentity | undefined, arrival: Arrival, isForced: boolean): void {
    const { store } = this.#ports;
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
      store.put(resource, arrival);
    } else if (known && known.metadata.uid !== identity.uid) {
      store.remove(refTo<ResourceKind>(known), arrival);
    }
  }

  /** Nothing where it cannot be read, which is told. */
  #decode(raw: unknown, identity: RawIdentity | undefined): Resource | undefined {
    const { ref, version } = identity ?? { ref: { kind: this.#kind, namespace: '', name: '' }, version: '' };
    const key = keyOf(ref);
    const decoding = decoded(raw);
    if (decoding.is === 'resource' && keyOf(refTo(decoding.resource)) === key) return decoding.resource;
    if (identity) this.#undecodable.set(key, version);
    this.#ports.reportUndecodable({ ref, version, faults: faultsOf(decoding) });
    return undefined;
  }
}

function decoded(raw: unknown): Decoding {
  const fields = fieldsOf(raw);
  return decode(fields ? withoutBallast(fields) : raw);
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

/** Takes the objects that an API server answers with to our writes, so that we see at once what we wrote. */
export type TakeAnswers = {
  /**
   * Puts an object, as it came from the server, into the store, unless the store has a newer one or the watch has told
   * of its deletion since. What is no object of a kind that is read is left alone.
   */
  readonly take: (raw: unknown) => void;
};

/** The objects of all kinds on their way into the store. */
export type Arrivals = TakeAnswers & {
  /** Those of one kind, which must be among those that are read. */
  readonly of: (kind: ResourceKind) => KindArrivals;
};

/** Makes the ways into a store for the kinds that are read. */
export function createArrivals(kinds: readonly ResourceKind[], ports: ArrivalDeps): Arrivals {
  const all = new Map<string, KindArrivals>(kinds.map(kind => [kind, new KindArrivals(kind, ports)]));
  return {
    of: kind => {
      const found = all.get(kind);
      if (!found) throw new Error(`${kind} is not among the kinds that are read`);
      return found;
    },
    take: raw => all.get(textIn(fieldsOf(raw), 'kind'))?.answer(raw),
  };
}
