import { randomUUID } from 'node:crypto';
import type { Ref } from '../api/key.ts';
import { refTo } from '../api/references.ts';
import { begin, revise, uidOf, vanish, withFinalizer, withoutFinalizer, withStatus } from './lifecycle.ts';
import type { Kept } from './lifecycle.ts';
import { judged } from './judged.ts';
import { ResourceError } from './resources.ts';
import type { AnyIndex, OwnResource, ReadResources, WriteResources } from './resources.ts';
import { ResourceStore } from './store.ts';
import type { Arrival } from './store.ts';

/** Whoever declares objects: a person with kubectl, a deployment tool. */
interface Author {
  /** Makes an object be as given, but for its status; what is not valid is refused, with what is wrong. */
  put(object: unknown): Promise<void>;
  /** Asks for an object's deletion; one that is not there is no error. */
  remove(ref: Ref): Promise<void>;
}

/** Resources that are nowhere but in memory, where they live as they would in a cluster. */
export type Memory = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  readonly author: Author;
  /** Reads what was there at the start, and from then on is synced. */
  readonly start: () => Promise<void>;
};

/** What a memory takes from outside; all of it has a default. */
export type MemorySettings = {
  readonly now?: () => Date;
  /** Told what a listener threw; otherwise that ends the process. */
  readonly reportFailure?: (failure: unknown) => void;
};

/** Makes an empty memory, which finds objects by the given indexes and has the given ones when it starts. */
export function createMemory(
  indexes: readonly AnyIndex[],
  first: readonly unknown[] = [],
  { now = () => new Date(), reportFailure = rethrow }: MemorySettings = {},
): Memory {
  const store = new ResourceStore(indexes, reportFailure);
  const given = { now, newUid: randomUUID };
  const put = (value: unknown, arrival: Arrival) => {
    const object = judged(value);
    const kept = keptIn(store, refTo(object));
    const said = { object, from } as const;
    store.put((kept ? revise(kept, said) : begin(said, given)).object, arrival);
  };
  const remove = (ref: Ref) => {
    const kept = keptIn(store, ref);
    if (kept) replace(store, kept, vanish(kept, given));
  };
  return {
    read: store,
    write: {
      ...changesIn(store),
      apply: object => promised(() => put(object, 'live')),
      remove: ref => promised(() => remove(ref)),
    },
    author: {
      put: object => promised(() => put(object, 'live')),
      remove: ref => promised(() => remove(ref)),
    },
    start: () =>
      promised(() => {
        for (const object of first) put(object, 'first');
        store.markSynced();
      }),
  };
}

/** The writes to an object that was read. */
function changesIn(
  store: ResourceStore,
): Pick<WriteResources, 'replaceStatus' | 'addFinalizer' | 'removeFinalizer'> {
  const change = (object: OwnResource, step: (kept: Kept) => Kept | undefined) =>
    promised(() => {
      const kept = keptIn(store, refTo(object));
      if (!kept || uidOf(kept) !== object.metadata.uid) throw gone(object);
      replace(store, kept, step(kept));
    });
  return {
    replaceStatus: (object, status) => change(object, kept => withStatus(kept, object, status)),
    addFinalizer: (object, finalizer) => change(object, kept => withFinalizer(kept, finalizer)),
    removeFinalizer: (object, finalizer) => change(object, kept => withoutFinalizer(kept, finalizer)),
  };
}

/** In memory, everybody may change everything. */
const from = { by: 'us' } as const;

function keptIn(store: ResourceStore, ref: Ref): Kept | undefined {
  const object = store.get(ref);
  return object && { object, from };
}

function replace(store: ResourceStore, { object }: Kept, next: Kept | undefined): void {
  if (next) store.put(next.object);
  else store.remove(refTo(object));
}

function gone({ kind, metadata: { namespace = '', name } }: OwnResource): ResourceError {
  return new ResourceError('Gone', `${kind} ${namespace}/${name} is not there any more`);
}

/** Does it at once, and lets a promise tell how it went. */
function promised(act: () => void): Promise<void> {
  return new Promise(resolve => {
    act();
    resolve();
  });
}

function rethrow(failure: unknown): void {
  queueMicrotask(() => {
    throw failure;
  });
}
