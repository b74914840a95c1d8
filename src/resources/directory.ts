import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { FOREIGN_KINDS } from '../api/resource.ts';
import type { ForeignKind } from '../api/resource.ts';
import { GROUP, kinds } from '../api/generated/kinds.ts';
import { keyOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { refTo } from '../api/references.ts';
import { Definitions } from './directory/definitions.ts';
import { DEFAULT_TIMING, FolderFollower } from './directory/follow.ts';
import type { Timing } from './directory/follow.ts';
import { ProblemList } from './directory/problems.ts';
import type { Problem } from './directory/problems.ts';
import { FolderReader } from './directory/reader.ts';
import { FolderWatch } from './directory/watch.ts';
import { isBeingDeleted, judged, LiveObjects, promised } from './lifecycle.ts';
import { outside } from './outside.ts';
import { ResourceError } from './resources.ts';
import type { AnyIndex, ReadResources, WriteResources } from './resources.ts';
import { ResourceStore } from './store.ts';
import type { ReadWritten, WrittenKey } from './manifests.ts';

/** What a directory is opened with. */
export type DirectorySettings = {
  /** Whose YAML and JSON files define objects. It is never written to. */
  readonly folder: string;
  readonly indexes: readonly AnyIndex[];
  /** Where objects are that need a namespace and name none. */
  readonly defaultNamespace?: string;
  /** Called with each problem when it is new. */
  readonly report: (problem: Problem) => void;
  /** Called with what a listener or an index threw. */
  readonly reportFailure: (failure: unknown) => void;
  /**
   * Called with the objects of others that changed, after what is read of them did, and when no file is unread any more;
   * without it, none are kept.
   */
  readonly onWritten?: (keys: readonly WrittenKey[]) => void;
  readonly now?: () => Date;
  readonly timing?: Partial<Timing>;
};

/** A folder of files as a source of resources. */
export type Directory = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  /** The objects of others as they are written, where `onWritten` is given. */
  readonly written: ReadWritten;
  /** Begins to read and to follow what changes; until then nothing is known. */
  readonly start: () => void;
  /** What is wrong at this moment. */
  readonly problems: () => readonly Problem[];
  readonly close: () => Promise<void>;
};

/** Opens a folder of declarations. What is added to them, such as a status, lives in memory, as long as this does. */
export function openDirectory(settings: DirectorySettings): Directory {
  const { indexes, defaultNamespace = 'default', report, onWritten } = settings;
  const folder = resolve(settings.folder);
  const reportFailure = outside(settings.reportFailure);
  const store = new ResourceStore(indexes, reportFailure);
  const problems = new ProblemList(report, reportFailure);
  const definitions = new Definitions();
  const now = settings.now ?? (() => new Date());
  const objects = new DirectoryObjects({ store, definitions, problems, folder, now, defaultNamespace });
  const watch: FolderWatch = new FolderWatch({
    onEvent: (where, name) => follower.note(where, name),
    onTrouble: why => problems.replace('watch', notWatched(why)),
  });
  const keepsWritten = onWritten !== undefined;
  let hadUnread = false;
  const reader = new FolderReader({
    ...{ folder, defaultNamespace, keepsWritten, definitions, problems, reportFailure },
    enter: where => watch.add(where),
  });
  const follower = new FolderFollower({
    ...{ folder, reader, watch, definitions, reportFailure },
    timing: { ...DEFAULT_TIMING, ...settings.timing },
    onChanged: keys => {
      for (const key of keys) objects.follow(key);
      const others = keys.filter(key => !key.startsWith(`${GROUP}|`));
      const isAllRead = hadUnread && !reader.hasUnread();
      hadUnread = reader.hasUnread();
      if (others.length > 0 || isAllRead) onWritten?.(others);
    },
    onComplete: () => store.markSynced(),
  });
  return {
    read: store,
    write: objects.write,
    written: {
      get: key => {
        const { declared, file = '' } = definitions.get(key) ?? {};
        return declared?.written && { object: declared.written, file };
      },
      keys: () => definitions.keys().filter(key => definitions.get(key)?.declared.written),
      hasUnread: () => reader.hasUnread(),
    },
    start: () => follower.start(),
    problems: () => problems.list(),
    close: async () => {
      await follower.close();
      watch.close();
    },
  };
}

function notWatched(why: string | undefined): readonly Problem[] {
  if (why === undefined) return [];
  const message = `changes are seen late, by reading everything from time to time: ${why}`;
  return [{ reason: 'NotWatched', file: '.', message }];
}

type ObjectsDeps = {
  readonly store: ResourceStore;
  readonly definitions: Definitions;
  readonly problems: ProblemList;
  readonly folder: string;
  readonly now: () => Date;
  readonly defaultNamespace: string;
};

/** The objects of a store as the files define them, beside those that we make ourselves. */
class DirectoryObjects {
  readonly #deps: ObjectsDeps;
  readonly #live: LiveObjects;
  /** The objects that we make; what a file says of one of them does not count. */
  readonly #owned = new Set<Key>();
  /** How many objects of a name there have been. */
  readonly #lives = new Map<Key, number>();

  constructor(deps: ObjectsDeps) {
    this.#deps = deps;
    this.#live = new LiveObjects(deps.store, { now: deps.now, newUid: key => this.#newUid(key) });
  }

  /** The same after every start, as long as nothing is removed and comes back. */
  #newUid(key: Key): string {
    const life = (this.#lives.get(key) ?? 0) + 1;
    this.#lives.set(key, life);
    const hash = createHash('sha256').update(`${this.#deps.folder}\0${key}\0${life}`).digest('hex');
    return hash.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  /** Makes an object be as the files define it, or deletes it. One that waits for its finalizers stays as it is. */
  follow(key: WrittenKey): void {
    const ref = refOfWritten(key);
    if (!ref) return;
    const { store, definitions } = this.#deps;
    const existing = store.get(ref);
    const arrival = store.isSynced() ? 'live' : 'first';
    const resource = definitions.get(key)?.declared.resource;
    const isFollowed = !this.#owned.has(keyOf(ref)) && !(existing && isBeingDeleted(existing));
    if (isFollowed && resource) this.#live.put(resource, arrival);
    else if (isFollowed) this.#live.remove(ref, arrival);
    this.#reportConflicts(ref, key);
  }

  /** Writes to memory alone: what users wrote is never touched, and what is ours never becomes a file. */
  get write(): WriteResources {
    const { defaultNamespace } = this.#deps;
    const { replaceStatus, addFinalizer, removeFinalizer } = this.#live.writes;
    return {
      replaceStatus,
      addFinalizer,
      removeFinalizer: async (object, finalizer) => {
        await removeFinalizer(object, finalizer);
        this.follow(writtenKeyOfRef(refTo(object)));
      },
      apply: object => promised(() => this.#apply(judged(object, defaultNamespace))),
      remove: ref => promised(() => this.#remove(ref)),
    };
  }

  #apply(resource: ReturnType<typeof judged>): void {
    const ref = refTo(resource);
    this.#refuseOthers(ref);
    this.#owned.add(keyOf(ref));
    this.#live.put(resource);
    this.#reportConflicts(ref, writtenKeyOfRef(ref));
  }

  /** What is removed makes room for what a file defines. */
  #remove(ref: Ref): void {
    this.#refuseOthers(ref);
    if (!this.#owned.delete(keyOf(ref))) return;
    this.#live.remove(ref);
    this.follow(writtenKeyOfRef(ref));
  }

  #refuseOthers(ref: Ref): void {
    const definition = this.#deps.definitions.get(writtenKeyOfRef(ref));
    if (!definition || this.#owned.has(keyOf(ref))) return;
    throw new ResourceError('Refused', `${keyOf(ref)} is defined in ${definition.file}, which is not ours`);
  }

  #reportConflicts(ref: Ref, key: WrittenKey): void {
    const { definitions, problems } = this.#deps;
    const isOwned = this.#owned.has(keyOf(ref));
    const [first = '', ...others] = definitions.definers(key);
    const who = isOwned ? 'made by mesh-gateway itself' : `defined in ${first} already`;
    const message = `${keyOf(ref)} is ${who}; what is written here does not count`;
    const files = isOwned && first !== '' ? [first, ...others] : others;
    problems.replace(
      keyOf(ref),
      files.map(file => ({ reason: 'Duplicate', file, message })),
    );
  }
}

/** The object that a key means, where its kind is one that is read. */
function refOfWritten(key: WrittenKey): Ref | undefined {
  const [group = '', kind = '', namespace = '', name = ''] = key.split('|');
  return group === groupOfKind(kind) ? { kind: kind as ResourceKind, namespace, name } : undefined;
}

function writtenKeyOfRef({ kind, namespace, name }: Ref): WrittenKey {
  return `${groupOfKind(kind) ?? ''}|${kind}|${namespace}|${name}`;
}

function groupOfKind(kind: string): string | undefined {
  if (Object.hasOwn(kinds, kind)) return GROUP;
  return Object.hasOwn(FOREIGN_KINDS, kind) ? FOREIGN_KINDS[kind as ForeignKind].group : undefined;
}
