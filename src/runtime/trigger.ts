import { keyOf, refOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { refTo } from '../api/objects/references.ts';
import type { Resource, ResourceOf } from '../api/objects/resource.ts';
import type { Change, Index, ReadResources } from '../store/resources.ts';
import type { Cause } from './queue/queue.ts';

/** Maps a value of a changed object to the objects of the controller that it concerns. */
type FindRefs<K extends ResourceKind> = (value: string, resources: ReadResources) => readonly Ref<K>[];

/** Which objects of a controller are enqueued when an object of another kind changes. */
export type Trigger<K extends ResourceKind> = {
  readonly kind: ResourceKind;
  readonly valuesOf: (object: Resource) => readonly string[];
  readonly refsOf: FindRefs<K>;
  /** Whether changes that leave metadata.generation as it is are ignored. */
  readonly isOfGeneration?: true;
};

/**
 * Enqueues what the values of a changed object map to: the values that it has now, and those that it had at the change
 * before.
 */
export function whenChanges<K extends ResourceKind, Of extends ResourceKind>(
  kind: Of,
  valuesOf: (object: ResourceOf<Of>) => readonly string[],
  refsOf: FindRefs<K>,
): Trigger<K> {
  return { kind, valuesOf: valuesOf as Trigger<K>['valuesOf'], refsOf };
}

/** As `whenChanges`, but ignores a change of status, labels or annotations alone, as GenerationChangedPredicate does. */
export function whenGenerationChanges<K extends ResourceKind, Of extends ResourceKind>(
  ...given: Parameters<typeof whenChanges<K, Of>>
): Trigger<K> {
  return { ...whenChanges<K, Of>(...given), isOfGeneration: true };
}

/** Maps a value to the objects that an index has under it. */
export function byIndex<K extends ResourceKind>(index: Index<K>): FindRefs<K> {
  return (value, resources) =>
    resources.find(index, value).map(({ metadata }) => refTo({ kind: index.kind, metadata }));
}

/** Maps a key to its object, which need not exist. */
export function byKey<K extends ResourceKind>(key: string): readonly Ref<K>[] {
  return [refOf(key as Key) as Ref<K>];
}

/** A trigger, with the values that each object had at its last change. */
class TriggerState<K extends ResourceKind> {
  readonly #trigger: Trigger<K>;
  readonly #resources: ReadResources;
  readonly #values = new Map<Key, readonly string[]>();
  readonly #generations = new Map<Key, number | undefined>();

  constructor(trigger: Trigger<K>, resources: ReadResources) {
    this.#trigger = trigger;
    this.#resources = resources;
  }

  /** Enqueues the keys that a change of an object concerns; one of them may be enqueued several times. */
  handle(key: Key, enqueue: (concerned: Key) => void): void {
    const before = this.#values.get(key) ?? NONE;
    const object = this.#resources.get(refOf(key));
    if (this.#isIgnored(key, object)) return;
    const now = object ? this.#trigger.valuesOf(object) : NONE;
    if (object) this.#values.set(key, now);
    else this.#values.delete(key);
    for (const value of now) this.#enqueueAll(value, enqueue);
    for (const value of before) if (!now.includes(value)) this.#enqueueAll(value, enqueue);
  }

  #isIgnored(key: Key, object: Resource | undefined): boolean {
    if (this.#trigger.isOfGeneration !== true) return false;
    const generation = object?.metadata.generation;
    if (generation !== undefined && this.#generations.get(key) === generation) return true;
    if (object) this.#generations.set(key, generation);
    else this.#generations.delete(key);
    return false;
  }

  #enqueueAll(value: string, enqueue: (concerned: Key) => void): void {
    for (const ref of this.#trigger.refsOf(value, this.#resources)) enqueue(keyOf(ref));
  }
}

const NONE: readonly string[] = [];

type EventHandler = {
  readonly enqueue: (key: Key, cause: Cause) => void;
  /** A trigger threw: what the change concerns is reconciled at the next resync only. */
  readonly triggerFailed: (key: Key, error: unknown) => void;
};

/**
 * Enqueues the keys of a controller that changes concern: first those of every existing object, then those of each change.
 * Returns the function that ends it.
 */
export function watchChanges<K extends ResourceKind>(
  { kind, triggers }: { readonly kind: K; readonly triggers: readonly Trigger<K>[] },
  resources: ReadResources,
  { enqueue, triggerFailed }: EventHandler,
): () => void {
  const states = triggers.map(trigger => ({
    kind: trigger.kind,
    state: new TriggerState(trigger, resources),
  }));
  const handle = ({ key, isInInitialList }: Pick<Change, 'key' | 'isInInitialList'>) => {
    const cause = isInInitialList ? 'first' : 'change';
    const kindOfKey = key.slice(0, key.indexOf('/'));
    if (kindOfKey === kind) enqueue(key, cause);
    for (const { kind: watched, state } of states) {
      if (kindOfKey !== watched) continue;
      try {
        state.handle(key, concerned => enqueue(concerned, cause));
      } catch (error) {
        triggerFailed(key, error);
      }
    }
  };
  const unsubscribe = resources.subscribe(handle);
  for (const watched of new Set([kind, ...triggers.map(trigger => trigger.kind)])) {
    for (const object of resources.list(watched))
      handle({ key: keyOf(refTo(object)), isInInitialList: true });
  }
  return unsubscribe;
}
