import { keyOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import type { ResourceOf } from '../api/objects/resource.ts';
import { changedIn, Sources } from './dependencies.ts';
import type { Dependent, Source } from './dependencies.ts';
import { indexedAs, membersAs } from './resources.ts';
import type { Index, ReadObjects, ReadResources } from './resources.ts';

/*
 * Reads that are recorded, so that whatever has read is notified when it would read something else:
 *
 *   read                          it is notified of a change of
 *   get(ref)                      the object, which need not exist
 *   find(index, value)            an object that the index has, or had, under the value
 *   members(index, value)         an object that gets or loses the value
 *   values(index)                 which values the index has
 *   list(kind)                    any object of the kind
 *   value(derived, name)          anything that the value was derived from, if the value is another one then
 *   exceptStatus.get and others   the same, but not where only the status of an object, or its resourceVersion, has changed;
 *                                 discovered endpoints, which are in a status, count as a part of spec
 */

/** Reads the declared objects, and what is derived from them; each read is recorded. */
export interface TrackedRead extends ReadObjects {
  /**
   * Reads that are not affected by a change of status alone: nothing may be decided by the status that they return but for
   * `endpointsOf`, and no index that they use may have other values from it.
   */
  readonly exceptStatus: ReadObjects;
  value<V>(derived: DerivedValues<V>, name: string): V;
}

/** Values derived from objects, by names. */
export interface DerivedValues<V> {
  /** The kinds of objects that it reads itself, and those that it has read through other derived values so far. */
  readonly kinds: ReadonlySet<ResourceKind>;
  /** The value of a name, which others can depend on; it must be refreshed before it is read. */
  entry(name: string): DerivedValue<V>;
}

/** A derived value that can be depended on. */
export interface DerivedValue<V> {
  readonly source: Source;
  /** Only of use after a refresh. */
  readonly value: V;
  /** Changes whenever the value does. */
  readonly version: number;
  /** Derives the value if it may be another one; throws where that fails. */
  refresh(): void;
}

/** The objects of a store, with everything that depends on reads of them. */
export class Tracking {
  readonly #read: ReadResources;
  readonly #sources: TrackedSources = { any: new Sources(), exceptStatus: new Sources() };
  readonly #unsubscribe: () => void;
  /** What notifies dependents if a derived value has changed. */
  #unverified: (() => void)[] = [];

  /** Must be created before others subscribe to the store, so that they find derived values invalidated. */
  constructor(read: ReadResources) {
    this.#read = read;
    this.#unsubscribe = read.subscribe(change => {
      // As at a start, when all objects arrive before anything reads them.
      if (this.size === 0) return;
      const { isOfStatus } = change;
      for (const id of changedIn(change)) {
        if (!isOfStatus) this.#sources.exceptStatus.notify(id, change);
        this.#sources.any.notify(id, change);
      }
    });
  }

  /** The objects, for reads that nothing depends on. */
  get untracked(): ReadResources {
    return this.#read;
  }

  /** How many different reads are depended on. */
  get size(): number {
    return this.#sources.any.size + this.#sources.exceptStatus.size;
  }

  /** Verifies a derived value before the next read of any, and in this turn of the event loop at the latest. */
  verifyLater(verify: () => void): void {
    if (this.#unverified.length === 0) queueMicrotask(() => this.verify());
    this.#unverified.push(verify);
  }

  /** Every read of a derived value calls it first, so that none is thought to be fresh that is not. */
  verify(): void {
    while (this.#unverified.length > 0) this.#unverified.pop()?.();
  }

  /** The reads of a dependent, none at first. */
  readsOf(dependent: Dependent): ReadSet {
    return new ReadSet(dependent, this.#read, this.#sources);
  }

  /** Nothing is notified any more, and derived values that are read later may be stale. */
  close(): void {
    this.#unsubscribe();
  }
}

type TrackedSources = { readonly any: Sources; readonly exceptStatus: Sources };

/** What a dependent has read, in its last run and in the one that is open. */
export class ReadSet {
  readonly #dependent: Dependent;
  readonly #read: ReadObjects;
  readonly #sources: TrackedSources;
  #last: readonly Source[] = [];
  #values: SeenValues = NO_VALUES;

  constructor(dependent: Dependent, read: ReadObjects, sources: TrackedSources) {
    this.#dependent = dependent;
    this.#read = read;
    this.#sources = sources;
  }

  /** Opens a run: each of its reads counts at once, so that a change during the run is not missed. */
  open(scope?: Scope): OpenReads {
    return new OpenReads(this.#read, this.#sources, this.#dependent, scope);
  }

  /** Ends a run. One that failed has perhaps not read everything, so the reads of the run before count as well. */
  close(run: OpenReads, hasSucceeded: boolean): void {
    const { sources, values } = run.end();
    for (const source of this.#last) {
      if (sources.has(source)) continue;
      if (hasSucceeded) source.remove(this.#dependent);
      else sources.add(source);
    }
    this.#last = [...sources];
    this.#values = values;
  }

  /** Whether a derived value is another one than the last run has read. */
  hasOtherValues(): boolean {
    for (const [entry, version] of this.#values) {
      try {
        entry.refresh();
      } catch {
        return true;
      }
      if (entry.version !== version) return true;
    }
    return false;
  }

  /** Forgets all reads. */
  clear(): void {
    for (const source of this.#last) source.remove(this.#dependent);
    this.#last = [];
    this.#values = NO_VALUES;
  }
}

/** The versions of derived values as they were read first. */
type SeenValues = Map<DerivedValue<unknown>, number>;

/** No value has this version. */
const FAILED = -1;

const NO_VALUES: SeenValues = new Map();

/** What a run may read. */
export type Scope = {
  /** The object of a reconcile, whose changes reconcile it in any case. */
  readonly own?: Key;
  /** Is called with each kind that is read; throws for one that may not be. */
  readonly uses: (kind: ResourceKind, how: 'itself' | 'through a derived value') => void;
};

/** The kinds that something declares to read itself, and those that its process watches, from which values may be derived. */
export type AllowedKinds = {
  readonly itself: ReadonlySet<ResourceKind>;
  /** Undefined for all. */
  readonly derived: ReadonlySet<ResourceKind> | undefined;
};

/** Refuses all other kinds. */
export function onlyKinds(name: string, { itself, derived }: AllowedKinds): Scope['uses'] {
  return (kind, how) => {
    if (how === 'itself') {
      if (itself.has(kind)) return;
      throw new Error(`${name} reads a ${kind}, which is not among its kinds: add it there`);
    }
    if (derived?.has(kind) !== false) return;
    throw new Error(
      `${name} reads a ${kind}, ${how}, which its process does not watch: add it to the kinds of a controller`,
    );
  };
}

/** The reads of a run that goes on. */
export class OpenReads implements TrackedRead {
  readonly #dependent: Dependent;
  readonly #any: RecordedReads;
  readonly exceptStatus: ReadObjects;
  #record: Set<Source> | undefined = new Set();
  #values = NO_VALUES;
  readonly #scope: Scope | undefined;

  constructor(read: ReadObjects, sources: TrackedSources, dependent: Dependent, scope?: Scope) {
    this.#dependent = dependent;
    this.#scope = scope;
    const record = (id: string, among: Sources) => this.#add(id, among);
    this.#any = new RecordedReads(read, sources.any, record, scope);
    this.exceptStatus = new RecordedReads(read, sources.exceptStatus, record, scope);
  }

  get<K extends ResourceKind>(ref: Ref<K>): ResourceOf<K> | undefined {
    return this.#any.get(ref);
  }

  find<K extends ResourceKind>(index: Index<K>, value: string): readonly ResourceOf<K>[] {
    return this.#any.find(index, value);
  }

  members<K extends ResourceKind>(index: Index<K>, value: string): readonly Key[] {
    return this.#any.members(index, value);
  }

  values<K extends ResourceKind>(index: Index<K>): readonly string[] {
    return this.#any.values(index);
  }

  list<K extends ResourceKind>(kind: K): readonly ResourceOf<K>[] {
    return this.#any.list(kind);
  }

  value<V>(derived: DerivedValues<V>, name: string): V {
    const record = this.#openRecord();
    const entry = derived.entry(name);
    this.#note(entry.source, record);
    if (this.#values === NO_VALUES) this.#values = new Map();
    const first = this.#values.get(entry);
    this.#values.set(entry, FAILED);
    entry.refresh();
    this.#values.set(entry, first ?? entry.version);
    if (this.#scope) for (const kind of derived.kinds) this.#scope.uses(kind, 'through a derived value');
    return entry.value;
  }

  /** Everything that was read; later reads throw. */
  end(): { readonly sources: Set<Source>; readonly values: SeenValues } {
    const sources = this.#record ?? new Set();
    this.#record = undefined;
    return { sources, values: this.#values };
  }

  /** A source is created only where it is recorded: nothing would release it otherwise. */
  #add(id: string, among: Sources): void {
    const record = this.#openRecord();
    this.#note(among.of(id), record);
  }

  #openRecord(): Set<Source> {
    if (!this.#record) throw new Error('a read after the end of its run is not recorded: read earlier');
    return this.#record;
  }

  #note(source: Source, record: Set<Source>): void {
    if (record.has(source)) return;
    record.add(source);
    source.add(this.#dependent);
  }
}

/** Reads of objects, each recorded as one of these sources. */
class RecordedReads implements ReadObjects {
  readonly #read: ReadObjects;
  readonly #sources: Sources;
  readonly #record: (id: string, among: Sources) => void;
  readonly #scope: Scope | undefined;

  constructor(
    read: ReadObjects,
    sources: Sources,
    record: (id: string, among: Sources) => void,
    scope?: Scope,
  ) {
    this.#read = read;
    this.#sources = sources;
    this.#record = record;
    this.#scope = scope;
  }

  get<K extends ResourceKind>(ref: Ref<K>): ResourceOf<K> | undefined {
    this.#depend(ref.kind, keyOf(ref));
    return this.#read.get(ref);
  }

  find<K extends ResourceKind>(index: Index<K>, value: string): readonly ResourceOf<K>[] {
    this.#depend(index.kind, indexedAs(index, value));
    return this.#read.find(index, value);
  }

  members<K extends ResourceKind>(index: Index<K>, value: string): readonly Key[] {
    this.#depend(index.kind, membersAs(index, value));
    return this.#read.members(index, value);
  }

  values<K extends ResourceKind>(index: Index<K>): readonly string[] {
    this.#depend(index.kind, index.name);
    return this.#read.values(index);
  }

  list<K extends ResourceKind>(kind: K): readonly ResourceOf<K>[] {
    this.#depend(kind, kind);
    return this.#read.list(kind);
  }

  #depend(kind: ResourceKind, id: string): void {
    this.#scope?.uses(kind, 'itself');
    if (this.#scope?.own !== id) this.#record(id, this.#sources);
  }
}
