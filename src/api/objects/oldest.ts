import type { ObjectMeta } from '../generated/types.ts';
import type { Ref, ResourceKind } from '../key.ts';

type Created = { readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'creationTimestamp'> };

/** Of objects of a kind that claim the same, the oldest has it; of equally old ones, the first by namespace and name. */
export function oldestOf<T extends Created>(objects: readonly T[]): T | undefined {
  return objects.reduce<T | undefined>(
    (oldest, each) => (oldest && !isOlder(each, oldest) ? oldest : each),
    undefined,
  );
}

function isOlder(a: Created, b: Created): boolean {
  const [createdA, createdB] = [timeMs(a.metadata.creationTimestamp), timeMs(b.metadata.creationTimestamp)];
  return createdA === createdB ? placeOf(a) < placeOf(b) : createdA < createdB;
}

/** The time of a timestamp: one that is missing or cannot be read counts as the newest. */
export function timeMs(timestamp: string | undefined): number {
  const time = timestamp === undefined ? NaN : Date.parse(timestamp);
  return Number.isNaN(time) ? Infinity : time;
}

/** The namespace and name of an object, as in `default/web`. */
export function placeOf({ metadata: { namespace = '', name } }: Pick<Created, 'metadata'>): string {
  return `${namespace}/${name}`;
}

/** The reference to an object of a kind by its `placeOf`. */
export function refAt<K extends ResourceKind>(kind: K, place: string): Ref<K> {
  const [namespace = '', name = ''] = place.split('/');
  return { kind, namespace, name };
}
