import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { ManifestKey } from './manifests.ts';
import type { Definitions } from './definitions.ts';
import type { FolderReader, Reading } from './reader.ts';
import { folderIdentity } from './scan.ts';
import type { WatchedFolder } from './scan.ts';
import type { FolderWatch } from './watch.ts';

export type Timing = {
  /** Changed files are read after this time without events, and after three times this time at the latest. */
  readonly quietMs: number;
  /** An object is deleted when no file has defined it for this time. */
  readonly deleteAfterMs: number;
  /** The folder is scanned again after this time, in case an event was missed. */
  readonly rescanMs: number;
  /** The same while some folders cannot be watched or read. */
  readonly unwatchedRescanMs: number;
};

export const DEFAULT_TIMING: Timing = {
  quietMs: 10,
  deleteAfterMs: 1000,
  rescanMs: 10_000,
  unwatchedRescanMs: 1000,
};

export type FollowDeps = {
  readonly folder: string;
  readonly timing: Timing;
  readonly reader: FolderReader;
  readonly watch: FolderWatch;
  readonly definitions: Pick<Definitions, 'expire' | 'missingSinceMs'>;
  /** Called with the objects that may have changed. */
  readonly onChanged: (keys: readonly ManifestKey[]) => void;
  /** Called after each complete scan. */
  readonly onComplete: () => void;
  readonly reportFailure: (failure: unknown) => void;
};

/** Keeps the definitions in sync with the files, in one run at a time. Events during a run lead to another. */
export class FolderFollower {
  readonly #deps: FollowDeps;
  #paths = new Set<string>();
  #isFullScan = true;
  #firstEventMs: number | undefined;
  #isIncomplete = true;
  #scannedMs = 0;
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(deps: FollowDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#run();
  }

  /** A name in a folder changed; undefined for any name. */
  onEvent(folder: WatchedFolder, name: string | undefined): void {
    const isPlain = name !== undefined && folder.path !== undefined && !name.startsWith('..');
    // Changes of hidden names count only where links lead through them.
    if (isPlain && name.startsWith('.')) return;
    if (isPlain) this.#paths.add(folder.path === '' ? name : `${folder.path}/${name}`);
    else this.#isFullScan = true;
    this.#firstEventMs ??= performance.now();
    if (!this.#running) this.#schedule();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #run(): void {
    clearTimeout(this.#timer);
    this.#running ??= this.#read()
      .catch((failure: unknown) => {
        [this.#isIncomplete, this.#scannedMs] = [true, performance.now()];
        this.#deps.reportFailure(failure);
      })
      .finally(() => {
        this.#running = undefined;
        this.#schedule();
      });
  }

  async #read(): Promise<void> {
    const { reader, definitions, onChanged, onComplete, timing } = this.#deps;
    const [paths, isFullScan, startMs] = [this.#paths, this.#isFullScan, performance.now()];
    [this.#paths, this.#isFullScan, this.#firstEventMs] = [new Set(), false, undefined];
    const { keys, isComplete } = isFullScan ? await this.#readAll() : await reader.readSome(paths);
    if (isFullScan) [this.#isIncomplete, this.#scannedMs] = [!isComplete, performance.now()];
    else if (!isComplete) [this.#isFullScan, this.#firstEventMs] = [true, startMs];
    const isScan = isFullScan && isComplete;
    onChanged(isScan ? [...keys, ...definitions.expire(startMs - timing.deleteAfterMs)] : keys);
    if (isScan) onComplete();
  }

  /** The parent folder is watched too: it shows when the folder itself is created, deleted or replaced. */
  async #readAll(): Promise<Reading> {
    const { folder, watch, reader } = this.#deps;
    const absolute = dirname(folder);
    const parent = await stat(absolute).catch(() => undefined);
    watch.begin();
    if (parent) watch.add({ absolute, identity: folderIdentity(parent), only: basename(folder) });
    try {
      return await reader.readAll();
    } finally {
      watch.end();
    }
  }

  /** Sets the timer for what is due first: reading changes, expiring missing objects, or a rescan. */
  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const { timing, watch, definitions } = this.#deps;
    const nowMs = performance.now();
    if (this.#firstEventMs !== undefined) {
      const latestMs = this.#firstEventMs + 3 * timing.quietMs - nowMs;
      this.#timer = setTimeout(() => this.#run(), Math.max(0, Math.min(timing.quietMs, latestMs)));
      return;
    }
    const isIncomplete = this.#isIncomplete || watch.isIncomplete;
    const rescanMs = this.#scannedMs + (isIncomplete ? timing.unwatchedRescanMs : timing.rescanMs);
    const missingMs = isIncomplete ? Infinity : definitions.missingSinceMs() + timing.deleteAfterMs;
    const rescan = () => {
      this.#isFullScan = true;
      this.#run();
    };
    this.#timer = setTimeout(rescan, Math.max(0, Math.min(rescanMs, missingMs) - nowMs) + 1);
  }
}
