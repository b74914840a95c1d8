import { keyOf, refOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { refTo } from '../api/references.ts';
import type { Resource, ResourceOf } from '../api/resource.ts';
import type { Change, Index, ReadResources } from '../resources/resources.ts';
import type { Cause } from './queue/queue.ts';

/** Finds the objects of a controller that a text leads to. */
export type FindRefs<K extends ResourceKind> = (text: string, resources: ReadResources) => readonly Ref<K>[];

/** Which objects of a controller have to be looked at because an object of another kind changed. */
export type Trigger<K extends ResourceKind> = {
  readonly kind: ResourceKind;
  readonly textsOf: (object: Resource) => readonly string[];
  readonly refsOf: FindRefs<K>;
};

/**
 * A change of an object of that kind concerns all that its texts lead to: those that it has now, and those that it had
 * when it was last heard of.
 */
export function whenChanges<K extends ResourceKind, Of extends ResourceKind>(
  kind: Of,
  textsOf: (object: ResourceOf<Of>) => readonly string[],
  refsOf: FindRefs<K>,
): Trigger<K> {
  return { kind, textsOf: textsOf as Trigger<K>['textsOf'], refsOf };
}

/** Finds objects by an index. */
export function foundBy<K extends ResourceKind>(index: Index<K>): FindRefs<K> {
  return (text, resources) =>
    resources.find(index, text).map(({ metadata }) => refTo({ kind: index.kind, metadata }));
}

/** Finds the one object whose key the text is. */
export function named<K extends ResourceKind>(text: string): readonly Ref<K>[] {
  return [refOf(text as Key) as Ref<K>];
}

/** Follows the objects of a trigger, so that what an object was tied to is still known when it no longer is. */
class Followed<K extends ResourceKind> {
  readonly #trigger: Trigger<K>;
  readonly #resources: ReadResources;
  readonly #texts = new Map<Key, readonly string[]>();

  constructor(trigger: Trigger<K>, resources: ReadResources) {
    this.#trigger = trigger;
    this.#resources = resources;
  }

  /** Names the keys that a change of an object concerns; one of them may be named several times. */
  follow(key: Key, name: (concerned: Key) => void): void {
    const before = this.#texts.get(key) ?? NONE;
    const object = this.#resources.get(refOf(key));
    const now = object ? this.#trigger.textsOf(object) : NONE;
    if (object) this.#texts.set(key, now);
    else this.#texts.delete(key);
    for (const text of now) this.#nameAll(text, name);
    for (const text of before) if (!now.includes(text)) this.#nameAll(text, name);
  }

  #nameAll(text: string, name: (concerned: Key) => void): void {
    for (const ref of this.#trigger.refsOf(text, this.#resources)) name(keyOf(ref));
  }
}

const NONE: readonly string[] = [];

/** Where keys go. */
type Destination = {
  readonly add: (key: Key, cause: Cause) => void;
  /** A trigger threw at a change, so that only the resync finds what it concerns. */
  readonly missed: (key: Key, error: unknown) => void;
};

/** Adds the keys of a controller that changes concern: first of all that is there, then of all that changes. */
export function routeChanges<K extends ResourceKind>(
  { kind, triggers }: { readonly kind: K; readonly triggers: readonly Trigger<K>[] },
  resources: ReadResources,
  { add, missed }: Destination,
): () => void {
  const followed = triggers.map(trigger => ({
    kind: trigger.kind,
    trigger: new Followed(trigger, resources),
  }));
  const handle = ({ key, isFirst }: Change) => {
    const cause = isFirst ? 'first' : 'change';
    const kindOfKey = key.slice(0, key.indexOf('/'));
    if (kindOfKey === kind) add(key, cause);
    for (const { kind: triggering, trigger } of followed) {
      if (kindOfKey !== triggering) continue;
      try {
        trigger.follow(key, concerned => add(concerned, cause));
      } catch (error) {
        missed(key, error);
      }
    }
  };
  const unsubscribe = resources.subscribe(handle);
  for (const read of new Set([kind, ...triggers.map(trigger => trigger.kind)])) {
    for (const object of resources.list(read)) handle({ key: keyOf(refTo(object)), isFirst: true });
  }
  return unsubscribe;
}
