import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { FOREIGN_KINDS, isDeclaredKind } from '../api/objects/resource.ts';
import type { ForeignKind } from '../api/objects/resource.ts';
import { GROUP, kinds } from '../api/generated/kinds.ts';
import { keyOf } from '../api/key.ts';
import type { Key, Ref, ResourceKind } from '../api/key.ts';
import { refTo } from '../api/objects/references.ts';
import { Definitions } from './definitions.ts';
import { DEFAULT_TIMING, FolderFollower } from './follow.ts';
import type { Timing } from './follow.ts';
import { ProblemList } from './problems.ts';
import type { FileProblem } from './problems.ts';
import { FolderReader } from './reader.ts';
import { FolderWatch } from './watch.ts';
import { isBeingDeleted, admit, ObjectLifecycle, promised } from '../store/lifecycle.ts';
import { ResourceError } from '../store/resources.ts';
import type { AnyIndex, ReadResources, WriteResources } from '../store/resources.ts';
import { ResourceStore } from '../store/store.ts';
import type { ReadManifests, ManifestKey } from './manifests.ts';

export type DirectoryOptions = {
  /** The folder of YAML and JSON files. It is never written to. */
  readonly folder: string;
  readonly indexes: readonly AnyIndex[];
  /** stored: files have objects as an API server returned them, with status. By default they are declarations. */
  readonly content?: 'declared' | 'stored';
  /** For namespaced objects without a namespace. */
  readonly defaultNamespace?: string;
  /** Called with each new problem. */
  readonly report: (problem: FileProblem) => void;
  /** Called with each error that a listener or an index throws. */
  readonly reportFailure: (failure: unknown) => void;
  /**
   * Called with the changed manifests of other groups, after the store has changed, and when the last unread file could be
   * read. Without it, no manifests are kept.
   */
  readonly onManifests?: (keys: readonly ManifestKey[]) => void;
  readonly now?: () => Date;
  readonly timing?: Partial<Timing>;
};

/** A folder of files as a source of resources. */
export type Directory = {
  readonly read: ReadResources;
  readonly write: WriteResources;
  /** The manifests of other groups; empty without `onManifests`. */
  readonly manifests: ReadManifests;
  /** Begins to read and watch the folder; until then the store is empty. */
  readonly start: () => void;
  /** The current problems. */
  readonly problems: () => readonly FileProblem[];
  readonly close: () => Promise<void>;
};

/** Opens a folder of declarations. Status and what else is written to them is kept in memory alone. */
export function openDirectory(settings: DirectoryOptions): Directory {
  const { indexes, content = 'declared', defaultNamespace = 'default', report } = settings;
  const { reportFailure, onManifests } = settings;
  const folder = resolve(settings.folder);
  const store = new ResourceStore(indexes, reportFailure);
  const problems = new ProblemList(report);
  const definitions = new Definitions();
  const now = settings.now ?? (() => new Date());
  const objects = new DirectoryObjects({
    store,
    definitions,
    problems,
    folder,
    now,
    content,
    defaultNamespace,
  });
  const watch: FolderWatch = new FolderWatch({
    onEvent: (where, name) => follower.onEvent(where, name),
    onIncomplete: why => problems.replace('watch', notWatched(why)),
  });
  const keepsManifests = onManifests !== undefined;
  let hadUnread = false;
  const reader = new FolderReader({
    folder,
    defaultNamespace,
    keepsManifests,
    definitions,
    problems,
    reportFailure,
    onFolder: where => watch.add(where),
  });
  const follower = new FolderFollower({
    folder,
    reader,
    watch,
    definitions,
    reportFailure,
    timing: { ...DEFAULT_TIMING, ...settings.timing },
    onChanged: keys => {
      for (const key of keys) objects.sync(key);
      const others = keys.filter(key => !key.startsWith(`${GROUP}|`));
      const isAllRead = hadUnread && !reader.hasUnread();
      hadUnread = reader.hasUnread();
      if (others.length > 0 || isAllRead) onManifests?.(others);
    },
    onComplete: () => store.markSynced(),
  });
  return {
    read: store,
    write: objects.write,
    manifests: {
      get: key => {
        const { declared, file = '' } = definitions.get(key) ?? {};
        return declared?.manifest && { object: declared.manifest, file };
      },
      keys: () => definitions.keys().filter(key => definitions.get(key)?.declared.manifest),
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

function notWatched(why: string | undefined): readonly FileProblem[] {
  if (why === undefined) return [];
  return [{ reason: 'NotWatched', file: '.', text: `changes are found late, by rescans: ${why}` }];
}

type ObjectsDeps = {
  readonly store: ResourceStore;
  readonly definitions: Definitions;
  readonly problems: ProblemList;
  readonly folder: string;
  readonly now: () => Date;
  readonly content: 'declared' | 'stored';
  readonly defaultNamespace: string;
};

/** Puts the objects that files define into a store, beside those that we own. */
class DirectoryObjects {
  readonly #deps: ObjectsDeps;
  readonly #live: ObjectLifecycle;
  /** The objects that we own; definitions of them in files are ignored. */
  readonly #owned = new Set<Key>();
  /** How many objects of a name have been created. */
  readonly #creations = new Map<Key, number>();

  constructor(deps: ObjectsDeps) {
    this.#deps = deps;
    this.#live = new ObjectLifecycle(deps.store, { now: deps.now, newUid: key => this.#newUid(key) });
  }

  /** The same after every start, unless objects are deleted and created again. */
  #newUid(key: Key): string {
    const creation = (this.#creations.get(key) ?? 0) + 1;
    this.#creations.set(key, creation);
    const hash = createHash('sha256').update(`${this.#deps.folder}\0${key}\0${creation}`).digest('hex');
    return hash.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  /** Creates, updates or deletes an object as the files define it, unless it waits for finalizers. */
  sync(key: ManifestKey): void {
    const ref = refOfKey(key);
    if (!ref) return;
    const { store, definitions, content } = this.#deps;
    const existing = store.get(ref);
    const isInInitialList = !store.isSynced();
    const resource = definitions.get(key)?.declared.resource;
    const isFromFiles = !this.#owned.has(keyOf(ref)) && !(existing && isBeingDeleted(existing));
    if (isFromFiles && resource && content === 'stored') store.put(resource, isInInitialList);
    else if (isFromFiles && resource) this.#live.put(resource, isInInitialList);
    else if (isFromFiles) this.#live.remove(ref, isInInitialList);
    this.#reportConflicts(ref, key);
  }

  /** Writes go to the store alone, never to files. */
  get write(): WriteResources {
    const { defaultNamespace } = this.#deps;
    const { replaceStatus, addFinalizer, removeFinalizer, removeAnnotation } = this.#live.writes;
    return {
      replaceStatus,
      addFinalizer,
      removeAnnotation,
      removeFinalizer: async (object, finalizer) => {
        await removeFinalizer(object, finalizer);
        this.sync(keyOfRef(refTo(object)));
      },
      apply: object => promised(() => this.#apply(admit(object, defaultNamespace))),
      remove: ref => promised(() => this.#remove(ref)),
    };
  }

  #apply(resource: ReturnType<typeof admit>): void {
    const ref = refTo(resource);
    this.#refuseUnowned(ref);
    this.#owned.add(keyOf(ref));
    this.#live.put(resource);
    this.#reportConflicts(ref, keyOfRef(ref));
  }

  /** After the deletion, a definition in a file takes effect. */
  #remove(ref: Ref): void {
    this.#refuseUnowned(ref);
    if (!this.#owned.delete(keyOf(ref))) return;
    this.#live.remove(ref);
    this.sync(keyOfRef(ref));
  }

  #refuseUnowned(ref: Ref): void {
    const definition = this.#deps.definitions.get(keyOfRef(ref));
    if (!definition || this.#owned.has(keyOf(ref))) return;
    throw new ResourceError(
      'Refused',
      `${keyOf(ref)} is defined in ${definition.file}, which mesh-gateway does not own`,
    );
  }

  #reportConflicts(ref: Ref, key: ManifestKey): void {
    const { definitions, problems } = this.#deps;
    const isOwned = this.#owned.has(keyOf(ref));
    const [first = '', ...others] = definitions.definers(key);
    const who = isOwned ? 'owned by mesh-gateway' : `already defined in ${first}`;
    const text = `${keyOf(ref)} is ${who}; this definition is ignored`;
    const files = isOwned && first !== '' ? [first, ...others] : others;
    problems.replace(
      keyOf(ref),
      files.map(file => ({ reason: 'Repeated', file, text })),
    );
  }
}

/** Undefined for kinds that are not read. */
function refOfKey(key: ManifestKey): Ref | undefined {
  const [group = '', kind = '', namespace = '', name = ''] = key.split('|');
  return isDeclaredKind(kind) && group === groupOfKind(kind)
    ? { kind: kind as ResourceKind, namespace, name }
    : undefined;
}

function keyOfRef({ kind, namespace, name }: Ref): ManifestKey {
  return `${groupOfKind(kind) ?? ''}|${kind}|${namespace}|${name}`;
}

function groupOfKind(kind: string): string | undefined {
  if (Object.hasOwn(kinds, kind)) return GROUP;
  return Object.hasOwn(FOREIGN_KINDS, kind) ? FOREIGN_KINDS[kind as ForeignKind].group : undefined;
}
