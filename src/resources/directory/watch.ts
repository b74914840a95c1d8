import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { basename } from 'node:path';
import type { Folder } from './scan.ts';
import { reasonOf } from './disk.ts';

/** Whom a watch tells what it sees. */
export type WatchPorts = {
  /** Something happened to what has this name in a folder, or to the folder itself, or nobody knows to what. */
  readonly tell: (folder: Folder, name: string | undefined) => void;
  /** Some folders are not watched, and why; or all are. */
  readonly tellTrouble: (why: string | undefined) => void;
};

type Watched = {
  readonly watcher: FSWatcher;
  readonly identity: string;
  /** As it was last said. */
  folder: Folder;
  /** The names in it that matter, where not all do. */
  only: Set<string> | undefined;
};

/** Watches folders, each for what lies directly in it. Which ones is said anew with every look at all of them. */
export class FolderWatch {
  readonly #ports: WatchPorts;
  readonly #watched = new Map<string, Watched>();
  readonly #wanted = new Set<string>();
  #trouble: string | undefined;

  constructor(ports: WatchPorts) {
    this.#ports = ports;
  }

  /** Whether what happens in some folder may go unseen. */
  get isIncomplete(): boolean {
    return this.#trouble !== undefined;
  }

  /** Begins to say which folders are watched. */
  begin(): void {
    this.#wanted.clear();
    this.#trouble = undefined;
  }

  /** Watches a folder from now on, also where another lay under its name before. */
  add(folder: Folder): void {
    const { absolute, identity } = folder;
    const isSaidAgain = this.#wanted.has(absolute);
    this.#wanted.add(absolute);
    const old = this.#watched.get(absolute);
    if (old?.identity === identity) {
      (isSaidAgain ? widen : restate)(old, folder);
      return;
    }
    this.#drop(absolute);
    try {
      const watcher = watch(absolute, (event, name) =>
        this.#see(absolute, watcher, event, name ?? undefined),
      );
      watcher.on('error', error => this.#lose(absolute, watcher, error));
      this.#watched.set(absolute, { watcher, identity, folder, only: namesOf(folder) });
    } catch (error) {
      // Who may not watch a folder may not list it either, and that is told then.
      if (!isDenied(error)) this.#trouble = whyNotWatched(error);
    }
  }

  /** All folders have been said. */
  end(): void {
    for (const absolute of this.#watched.keys()) if (!this.#wanted.has(absolute)) this.#drop(absolute);
    this.#ports.tellTrouble(this.#trouble);
  }

  close(): void {
    for (const absolute of this.#watched.keys()) this.#drop(absolute);
  }

  #see(absolute: string, watcher: FSWatcher, event: string, name: string | undefined): void {
    const seen = this.#watched.get(absolute);
    if (seen?.watcher !== watcher) return;
    const { folder, only } = seen;
    // So it tells that the folder itself was removed or moved; what is there next may have the same inode.
    const isEnd = event === 'rename' && name === basename(absolute);
    if (isEnd) this.#drop(absolute);
    if (isEnd) this.#ports.tell(folder, undefined);
    else if (name === undefined || !only || only.has(name)) this.#ports.tell(folder, name);
  }

  #lose(absolute: string, watcher: FSWatcher, error: Error): void {
    const lost = this.#watched.get(absolute);
    if (lost?.watcher !== watcher) return;
    this.#drop(absolute);
    this.#trouble = whyNotWatched(error);
    this.#ports.tell(lost.folder, undefined);
  }

  #drop(absolute: string): void {
    this.#watched.get(absolute)?.watcher.close();
    this.#watched.delete(absolute);
  }
}

function namesOf({ only }: Folder): Set<string> | undefined {
  return only === undefined ? undefined : new Set([only]);
}

function restate(watched: Watched, folder: Folder): void {
  watched.folder = folder;
  watched.only = namesOf(folder);
}

/** What is said twice of one folder counts together. */
function widen(watched: Watched, folder: Folder): void {
  if (folder.path !== undefined) watched.folder = folder;
  if (folder.only === undefined) watched.only = undefined;
  else watched.only?.add(folder.only);
}

function isDenied(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EACCES';
}

function whyNotWatched(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC') return 'this machine watches too many files: raise fs.inotify.max_user_watches';
  if (code === 'EMFILE') return 'this machine has too many watchers: raise fs.inotify.max_user_instances';
  return reasonOf(error);
}
