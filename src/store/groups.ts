import { isEqual } from '../api/json.ts';
import { groupOf } from '../api/key.ts';
import type { Key, ResourceKind } from '../api/key.ts';
import { Derived } from './derived.ts';
import type { TrackedRead, Tracking } from './tracking.ts';

/** Keys by their `groupOf`. */
type Group = { readonly at: number; readonly keys: readonly Key[] };

/** Sets of keys in groups, so that a change of one key or of its object costs the same however many others there are. */
export type Groups = {
  /** By the name of a set, in order; no group is empty. */
  readonly of: Derived<readonly Group[]>;
  /** By the name of a set and the number of a group, with a space between: the keys of the group. */
  readonly keys: Derived<readonly Key[]>;
};

/** Groups the keys of sets, which are read from objects of some kinds; their names have no spaces. */
export function groupsFrom(
  tracking: Tracking,
  reads: readonly ResourceKind[],
  keysOf: (name: string, run: TrackedRead) => Iterable<Key>,
): Groups {
  const of = new Derived<readonly Group[]>(
    tracking,
    reads,
    (name, run) => groupsOf(keysOf(name, run)),
    isEqual,
  );
  const keys = new Derived<readonly Key[]>(
    tracking,
    [],
    (place, run) => {
      const [name = '', at] = place.split(' ');
      return run.value(of, name).find(group => String(group.at) === at)?.keys ?? [];
    },
    isEqual,
  );
  return { of, keys };
}

function groupsOf(all: Iterable<Key>): readonly Group[] {
  const groups = new Map<number, Key[]>();
  for (const key of new Set(all)) {
    const at = groupOf(key);
    const group = groups.get(at);
    if (group) group.push(key);
    else groups.set(at, [key]);
  }
  return [...groups].sort(([a], [b]) => a - b).map(([at, keys]) => ({ at, keys: keys.sort() }));
}
