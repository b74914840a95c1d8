import { randomUUID } from 'node:crypto';
import type { Ref } from '../../../src/api/key.ts';
import { admit, ObjectLifecycle, promised } from '../../../src/resources/lifecycle.ts';
import type { AnyIndex, ReadResources, WriteResources } from '../../../src/resources/resources.ts';
import { ResourceStore } from '../../../src/resources/store.ts';

/** Whoever declares objects: a person with kubectl, a deployment tool. */
interface Author {
  /** Makes an object be as given, but for its status; what is not valid is refused, with what is wrong. */
  put(object: unknown): Promise<void>;
  /** Asks for an object's deletion; one that does not exist is no error. */
  remove(ref: Ref): Promise<void>;
}

/** Resources that exist in memory alone, where they live as they would in a cluster. */
export type Memory = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  readonly author: Author;
  /** Reads what exists at the start, and from then on is synced. */
  readonly start: () => Promise<void>;
};

/** What a memory takes from outside; all of it has a default. */
export type MemorySettings = {
  readonly now?: () => Date;
  /** Called with what a listener threw; otherwise that ends the process. */
  readonly reportFailure?: (failure: unknown) => void;
};

/** Makes an empty memory, which finds objects by the given indexes and has the given ones when it starts. */
export function createMemory(
  indexes: readonly AnyIndex[],
  first: readonly unknown[] = [],
  { now = () => new Date(), reportFailure = rethrow }: MemorySettings = {},
): Memory {
  const store = new ResourceStore(indexes, reportFailure);
  const objects = new ObjectLifecycle(store, { now, newUid: () => randomUUID() });
  // In memory, everybody may change everything.
  const put = (object: unknown) => promised(() => objects.put(admit(object)));
  const remove = (ref: Ref) => promised(() => objects.remove(ref));
  return {
    read: store,
    write: { ...objects.writes, apply: put, remove },
    author: { put, remove },
    start: () =>
      promised(() => {
        for (const object of first) objects.put(admit(object), 'first');
        store.markSynced();
      }),
  };
}

function rethrow(failure: unknown): void {
  queueMicrotask(() => {
    throw failure;
  });
}
