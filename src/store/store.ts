import { keyOf, refOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { haveSameDiscovered } from '../api/objects/endpoints.ts';
import { refTo } from '../api/objects/references.ts';
import type { Resource, ResourceOf } from '../api/objects/resource.ts';
import { KindStore } from './kind-store.ts';
import type { Effect } from './kind-store.ts';
import { byNamespace } from './resources.ts';
import type { AnyIndex, Change, Index, ReadResources } from './resources.ts';

/**
 * The objects of all kinds in memory, filled by an adapter. It freezes them and notifies listeners of each change after it
 * has taken effect; an object that equals the stored one is not a change.
 */
export class ResourceStore implements ReadResources {
  readonly #indexes: readonly AnyIndex[];
  readonly #kinds = new Map<ResourceKind, KindStore>();
  readonly #notifier: Notifier;
  readonly #reportFailure: (failure: unknown) => void;
  /** Errors of indexes, reported after all changes have taken effect. */
  #failures: unknown[] = [];
  readonly #synced: Promise<void>;
  #resolveSynced: () => void = () => undefined;
  #isSynced = false;

  /** `reportFailure` is called with each error that a listener or an index throws. */
  constructor(indexes: readonly AnyIndex[], reportFailure: (failure: unknown) => void) {
    const names = indexes.flatMap(({ kind, name }) => [name, byNamespace(kind).name]);
    const repeated = indexes.find(({ name }) => names.indexOf(name) < names.lastIndexOf(name));
    if (repeated) throw new Error(`two indexes have the name ${repeated.name}`);
    this.#indexes = indexes;
    this.#reportFailure = reportFailure;
    this.#notifier = new Notifier(reportFailure);
    this.#synced = new Promise(resolve => (this.#resolveSynced = resolve));
  }

  get<K extends ResourceKind>(ref: Ref<K>): ResourceOf<K> | undefined {
    return this.#kindStore(ref.kind).get(keyOf(ref)) as ResourceOf<K> | undefined;
  }

  list<K extends ResourceKind>(kind: K): readonly ResourceOf<K>[] {
    return this.#kindStore(kind).list() as readonly ResourceOf<K>[];
  }

  find<K extends ResourceKind>(index: Index<K>, value: string): readonly ResourceOf<K>[] {
    return this.#found(index, value).map(({ object }) => object as ResourceOf<K>);
  }

  members<K extends ResourceKind>(index: Index<K>, value: string): readonly Key[] {
    return this.#found(index, value).map(({ key }) => key);
  }

  values<K extends ResourceKind>({ kind, name }: Index<K>): readonly string[] {
    const values = this.#kindStore(kind).values(name);
    if (!values) throw new Error(`the store was made without the index ${name}`);
    return values;
  }

  subscribe(listener: (change: Change) => void): () => void {
    return this.#notifier.subscribe(listener);
  }

  isSynced(): boolean {
    return this.#isSynced;
  }

  whenSynced(): Promise<void> {
    return this.#synced;
  }

  /** Marks the initial lists as complete. */
  markSynced(): void {
    this.#isSynced = true;
    this.#resolveSynced();
  }

  /** Adds or replaces an object; returns whether it changed. */
  put(object: Resource, isInInitialList = false): boolean {
    const isChange = this.#place(object, isInInitialList);
    this.#notifyAll();
    return isChange;
  }

  /** Returns whether the object existed. */
  remove(ref: Ref, isInInitialList = false): boolean {
    const isChange = this.#drop(keyOf(ref), isInInitialList);
    this.#notifier.notifyAll();
    return isChange;
  }

  /** Replaces all objects of a kind; listeners are notified when all changes have taken effect. */
  replaceAll<K extends ResourceKind>(
    kind: K,
    objects: readonly ResourceOf<K>[],
    isInInitialList = false,
  ): void {
    const wanted = new Map((objects as readonly Resource[]).map(object => [keyOf(refTo(object)), object]));
    for (const key of this.#kindStore(kind).keys()) if (!wanted.has(key)) this.#drop(key, isInInitialList);
    for (const object of wanted.values()) this.#place(object, isInInitialList);
    this.#notifyAll();
  }

  #found<K extends ResourceKind>({ kind, name }: Index<K>, value: string) {
    const found = this.#kindStore(kind).find(name, value);
    if (!found) throw new Error(`the store was made without the index ${name}`);
    return found;
  }

  #notifyAll(): void {
    const failures = this.#failures;
    this.#failures = [];
    this.#notifier.notifyAll();
    for (const failure of failures) this.#reportFailure(failure);
  }

  #place(object: Resource, isInInitialList: boolean): boolean {
    const key = keyOf(refTo(object));
    return this.#changed(key, this.#kindStore(object.kind).put(key, object), isInInitialList);
  }

  #drop(key: Key, isInInitialList: boolean): boolean {
    return this.#changed(key, this.#kindStore(refOf(key).kind).remove(key), isInInitialList);
  }

  #changed(key: Key, effect: Effect | undefined, isInInitialList: boolean): boolean {
    if (effect) this.#notifier.add(new ObjectChange(key, isInInitialList, effect));
    return effect !== undefined;
  }

  #kindStore(kind: ResourceKind): KindStore {
    const known = this.#kinds.get(kind);
    if (known) return known;
    const indexes = [byNamespace(kind) as AnyIndex, ...this.#indexes.filter(index => index.kind === kind)];
    const created = new KindStore(indexes, failure => this.#failures.push(failure));
    this.#kinds.set(kind, created);
    return created;
  }
}

/** Works out what a change has changed only when that is asked for: nothing depends on most objects. */
class ObjectChange implements Change {
  readonly key: Key;
  readonly isInInitialList: boolean;
  readonly #effect: Effect;
  #isOfStatus: boolean | undefined;

  constructor(key: Key, isInInitialList: boolean, effect: Effect) {
    this.key = key;
    this.isInInitialList = isInInitialList;
    this.#effect = effect;
  }

  get isOfStatus(): boolean {
    return (this.#isOfStatus ??= isOfStatus(this.#effect));
  }

  get indexed(): readonly string[] {
    return this.#effect.indexed();
  }
}

function isOfStatus({ before, after }: Effect): boolean {
  if (before === undefined || after === undefined || !differInStatusOnly(before, after)) return false;
  return before.kind !== 'MeshEndpoints' || haveSameDiscovered(before, after as typeof before);
}

/** Equal parts of two versions of an object are identical. */
function differInStatusOnly(before: Resource, after: Resource): boolean {
  const fields = differing(before, after);
  if (!fields.includes('metadata')) return fields.every(name => name === 'status');
  const ofMetadata = differing(before.metadata, after.metadata);
  const isVersion = ofMetadata.every(name => name === 'resourceVersion');
  return isVersion && fields.every(name => name === 'status' || name === 'metadata');
}

/** The names of the fields that are not identical. */
function differing<T extends object>(before: T, after: T): readonly string[] {
  const names = Object.keys({ ...before, ...after });
  return names.filter(name => before[name as keyof T] !== after[name as keyof T]);
}

type Listener = (change: Change) => void;

/**
 * Notifies every listener of every change, in order. A listener that throws is reported and does not affect the others.
 * Changes made by a listener are queued behind those that all listeners have yet to receive.
 */
class Notifier {
  readonly #reportFailure: (failure: unknown) => void;
  readonly #subscriptions = new Set<{ readonly listener: Listener }>();
  readonly #pending = new Set<Change>();
  #isNotifying = false;

  constructor(reportFailure: (failure: unknown) => void) {
    this.#reportFailure = reportFailure;
  }

  /** A listener that subscribes twice is called twice. */
  subscribe(listener: Listener): () => void {
    const subscription = { listener };
    this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }

  add(change: Change): void {
    if (this.#subscriptions.size > 0) this.#pending.add(change);
  }

  notifyAll(): void {
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    try {
      // The iteration includes changes that listeners add.
      for (const change of this.#pending) {
        this.#pending.delete(change);
        this.#notify(change);
      }
    } finally {
      this.#isNotifying = false;
    }
  }

  #notify(change: Change): void {
    for (const subscription of [...this.#subscriptions]) {
      if (this.#subscriptions.has(subscription)) this.#call(subscription.listener, change);
    }
  }

  #call(listener: Listener, change: Change): void {
    try {
      listener(change);
    } catch (failure) {
      this.#reportFailure(failure);
    }
  }
}
