import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { basename } from 'node:path';
import { reasonOf } from './file.ts';
import type { WatchedFolder } from './scan.ts';

export type WatchDeps = {
  /** A name in a folder changed; undefined for the folder itself or an unknown name. */
  readonly onEvent: (folder: WatchedFolder, name: string | undefined) => void;
  /** Why some folders cannot be watched; undefined where all are. */
  readonly onIncomplete: (why: string | undefined) => void;
};

type Watched = {
  readonly watcher: FSWatcher;
  readonly identity: string;
  folder: WatchedFolder;
  /** The only names whose events count; undefined for all. */
  only: Set<string> | undefined;
  /** The last scan that added it. */
  scan: number;
};

/** Watches folders, not recursively. Each scan adds all folders again between `begin` and `end`. */
export class FolderWatch {
  readonly #deps: WatchDeps;
  readonly #watched = new Map<string, Watched>();
  #scan = 0;
  #failure: string | undefined;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** Whether events of some folder may be missed. */
  get isIncomplete(): boolean {
    return this.#failure !== undefined;
  }

  begin(): void {
    this.#scan++;
    this.#failure = undefined;
  }

  /** Watches a folder, also one that replaced another of the same path. */
  add(folder: WatchedFolder): void {
    const { absolute, identity } = folder;
    const old = this.#watched.get(absolute);
    if (old?.identity === identity) this.#addAgain(old, folder);
    else this.#open(folder);
  }

  /** Stops watching folders that were not added since `begin`. */
  end(): void {
    for (const [absolute, { scan }] of this.#watched) if (scan !== this.#scan) this.#drop(absolute);
    this.#deps.onIncomplete(this.#failure);
  }

  close(): void {
    for (const absolute of this.#watched.keys()) this.#drop(absolute);
  }

  /** Folders that are added twice in a scan are merged. */
  #addAgain(watched: Watched, folder: WatchedFolder): void {
    const isFirst = watched.scan !== this.#scan;
    watched.scan = this.#scan;
    if (isFirst || folder.path !== undefined) watched.folder = folder;
    if (isFirst || folder.only === undefined) watched.only = namesOf(folder);
    else watched.only?.add(folder.only);
  }

  #open(folder: WatchedFolder): void {
    const { absolute, identity } = folder;
    this.#drop(absolute);
    try {
      const watcher = watch(absolute, (event, name) =>
        this.#onEvent(absolute, watcher, event, name ?? undefined),
      );
      watcher.on('error', error => this.#onError(absolute, watcher, error));
      const scan = this.#scan;
      this.#watched.set(absolute, { watcher, identity, folder, only: namesOf(folder), scan });
    } catch (error) {
      // A folder without read permission is reported when listing it fails.
      if (codeOf(error) !== 'EACCES') this.#failure = reasonFor(error);
    }
  }

  #onEvent(absolute: string, watcher: FSWatcher, event: string, name: string | undefined): void {
    const watched = this.#watched.get(absolute);
    if (watched?.watcher !== watcher) return;
    // The folder itself was deleted or moved; its successor may have the same inode.
    const isEnd = event === 'rename' && name === basename(absolute);
    if (isEnd) this.#drop(absolute);
    if (isEnd) this.#deps.onEvent(watched.folder, undefined);
    else if (name === undefined || !watched.only || watched.only.has(name))
      this.#deps.onEvent(watched.folder, name);
  }

  #onError(absolute: string, watcher: FSWatcher, error: Error): void {
    const failed = this.#watched.get(absolute);
    if (failed?.watcher !== watcher) return;
    this.#drop(absolute);
    this.#failure = reasonFor(error);
    this.#deps.onEvent(failed.folder, undefined);
  }

  #drop(absolute: string): void {
    this.#watched.get(absolute)?.watcher.close();
    this.#watched.delete(absolute);
  }
}

function namesOf({ only }: WatchedFolder): Set<string> | undefined {
  return only === undefined ? undefined : new Set([only]);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function reasonFor(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOSPC') return 'this machine watches too many files: raise fs.inotify.max_user_watches';
  if (code === 'EMFILE') return 'this machine has too many watchers: raise fs.inotify.max_user_instances';
  return reasonOf(error);
}
