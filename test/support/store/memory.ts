import { randomUUID } from 'node:crypto';
import type { Ref } from '../../../src/api/key.ts';
import { admit, ObjectLifecycle, promised } from '../../../src/store/lifecycle.ts';
import type { AnyIndex, ReadResources, WriteResources } from '../../../src/store/resources.ts';
import { ResourceStore } from '../../../src/store/store.ts';

/** The user who declares objects: a person with kubectl, or a deployment tool. */
interface Author {
  /** Applies an object except its status; rejects with the faults of an invalid one. */
  put(object: unknown): Promise<void>;
  /** Deletes an object; a missing one is no error. */
  remove(ref: Ref): Promise<void>;
}

/** Resources in memory, which behave as in a cluster. */
export type Memory = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  readonly author: Author;
  /** Stores an object as a whole, as an API server returned it: with the status that others have written. */
  readonly observe: (object: object) => void;
  /** Reads the initial objects, and is synced afterwards. */
  readonly start: () => Promise<void>;
};

/** The options of a memory, all with defaults. */
export type MemorySettings = {
  readonly now?: () => Date;
  /** Called with the error of a listener; without it, such an error ends the process. */
  readonly reportFailure?: (failure: unknown) => void;
};

/** Creates a memory with the given indexes and initial objects. */
export function createMemory(
  indexes: readonly AnyIndex[],
  first: readonly unknown[] = [],
  { now = () => new Date(), reportFailure = rethrow }: MemorySettings = {},
): Memory {
  const store = new ResourceStore(indexes, reportFailure);
  const objects = new ObjectLifecycle(store, { now, newUid: () => randomUUID() });
  // In memory there are no field managers: everyone may change everything.
  const put = (object: unknown) => promised(() => objects.put(admit(object)));
  const remove = (ref: Ref) => promised(() => objects.remove(ref));
  return {
    read: store,
    write: { ...objects.writes, apply: put, remove },
    author: { put, remove },
    observe: object => void store.put(admit(object)),
    start: () =>
      promised(() => {
        for (const object of first) objects.put(admit(object), true);
        store.markSynced();
      }),
  };
}

function rethrow(failure: unknown): void {
  queueMicrotask(() => {
    throw failure;
  });
}
