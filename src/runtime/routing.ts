import { keyOf } from '../api/key.ts';
import type { Key, ResourceKind } from '../api/key.ts';
import { refTo } from '../api/references.ts';
import type { Change, ReadResources } from '../resources/resources.ts';
import type { Controller } from './controller.ts';
import type { Cause } from './outcome.ts';
import { Followed } from './trigger.ts';

/** Takes what a route gives. */
export type Destination = {
  readonly add: (key: Key, cause: Cause) => void;
  /** A trigger threw at a change, so that only the resync finds what it concerns. */
  readonly missed: (key: Key, error: unknown) => void;
};

/** Adds the keys of a controller that changes concern: first of all that is there, then of all that changes. */
export function routeChanges<K extends ResourceKind>(
  { kind, triggers }: Pick<Controller<K>, 'kind' | 'triggers'>,
  resources: ReadResources,
  { add, missed }: Destination,
): () => void {
  const followed = triggers.map(trigger => ({
    kind: trigger.kind,
    trigger: new Followed(trigger, resources),
  }));
  const hear = ({ key, isFirst }: Change) => {
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
  const unsubscribe = resources.subscribe(hear);
  for (const read of new Set([kind, ...triggers.map(trigger => trigger.kind)])) {
    for (const object of resources.list(read)) hear({ key: keyOf(refTo(object)), isFirst: true });
  }
  return unsubscribe;
}
