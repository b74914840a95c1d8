import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { basename } from 'node:path';
import { reasonOf } from './file.ts';
import type { Folder } from './scan.ts';

/** Who is called by a watch. */
export type WatchDeps = {
  /** Something happened to a name in a folder, or to the folder itself, or to an unknown name. */
  readonly onEvent: (folder: Folder, name: string | undefined) => void;
  /** Some folders cannot be watched, and why; or all are. */
  readonly onTrouble: (why: string | undefined) => void;
};

type Watched = {
  readonly watcher: FSWatcher;
  readonly identity: string;
  /** As it was last added. */
  folder: Folder;
  /** The names in it that matter, where not all do. */
  only: Set<string> | undefined;
  /** The round in which it was last added. */
  round: number;
};

/** Watches folders, each for what lies directly in it. With every scan all of them are added anew, in a round. */
export class FolderWatch {
  readonly #deps: WatchDeps;
  readonly #watched = new Map<string, Watched>();
  #round = 0;
  #trouble: string | undefined;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** Whether events of some folder may be missed. */
  get isIncomplete(): boolean {
    return this.#trouble !== undefined;
  }

  /** Begins a round. */
  begin(): void {
    this.#round++;
    this.#trouble = undefined;
  }

  /** Watches a folder from now on, also where another lay under its name before. */
  add(folder: Folder): void {
    const { absolute, identity } = folder;
    const old = this.#watched.get(absolute);
    if (old?.identity === identity) this.#addAgain(old, folder);
    else this.#open(folder);
  }

  /** Ends a round: what was not added in it is watched no longer. */
  end(): void {
    for (const [absolute, { round }] of this.#watched) if (round !== this.#round) this.#drop(absolute);
    this.#deps.onTrouble(this.#trouble);
  }

  close(): void {
    for (const absolute of this.#watched.keys()) this.#drop(absolute);
  }

  /** What is added twice in a round counts together. */
  #addAgain(watched: Watched, folder: Folder): void {
    const isFirst = watched.round !== this.#round;
    watched.round = this.#round;
    if (isFirst || folder.path !== undefined) watched.folder = folder;
    if (isFirst || folder.only === undefined) watched.only = namesOf(folder);
    else watched.only?.add(folder.only);
  }

  #open(folder: Folder): void {
    const { absolute, identity } = folder;
    this.#drop(absolute);
    try {
      const watcher = watch(absolute, (event, name) =>
        this.#see(absolute, watcher, event, name ?? undefined),
      );
      watcher.on('error', error => this.#lose(absolute, watcher, error));
      const round = this.#round;
      this.#watched.set(absolute, { watcher, identity, folder, only: namesOf(folder), round });
    } catch (error) {
      // Who may not watch a folder may not list it either, and that is reported then.
      if (codeOf(error) !== 'EACCES') this.#trouble = whyNotWatched(error);
    }
  }

  #see(absolute: string, watcher: FSWatcher, event: string, name: string | undefined): void {
    const seen = this.#watched.get(absolute);
    if (seen?.watcher !== watcher) return;
    // So it reports that the folder itself was removed or moved; what is there next may have the same inode.
    const isEnd = event === 'rename' && name === basename(absolute);
    if (isEnd) this.#drop(absolute);
    if (isEnd) this.#deps.onEvent(seen.folder, undefined);
    else if (name === undefined || !seen.only || seen.only.has(name)) this.#deps.onEvent(seen.folder, name);
  }

  #lose(absolute: string, watcher: FSWatcher, error: Error): void {
    const lost = this.#watched.get(absolute);
    if (lost?.watcher !== watcher) return;
    this.#drop(absolute);
    this.#trouble = whyNotWatched(error);
    this.#deps.onEvent(lost.folder, undefined);
  }

  #drop(absolute: string): void {
    this.#watched.get(absolute)?.watcher.close();
    this.#watched.delete(absolute);
  }
}

function namesOf({ only }: Folder): Set<string> | undefined {
  return only === undefined ? undefined : new Set([only]);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function whyNotWatched(error: unknown): string {
  const code = codeOf(error);
  if (code === 'ENOSPC') return 'this machine watches too many files: raise fs.inotify.max_user_watches';
  if (code === 'EMFILE') return 'this machine has too many watchers: raise fs.inotify.max_user_instances';
  return reasonOf(error);
}
