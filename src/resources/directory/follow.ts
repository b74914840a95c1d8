import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { WrittenKey } from '../manifests.ts';
import type { Definitions } from './definitions.ts';
import type { FolderReader, Reading } from './reader.ts';
import { lifeOf } from './scan.ts';
import type { Folder } from './scan.ts';
import type { FolderWatch } from './watch.ts';

/** When files are read. */
export type Timing = {
  /** Changed files are read when there was no event for this time, and after three times this in any case. */
  readonly quietMs: number;
  /** An object is deleted when no file has defined it for this time. */
  readonly goneMs: number;
  /** Everything is read again after this time, in case that an event was missed. */
  readonly rescanMs: number;
  /** The same while it is known that events may be missed. */
  readonly blindRescanMs: number;
};

export const DEFAULT_TIMING: Timing = { quietMs: 10, goneMs: 1000, rescanMs: 10_000, blindRescanMs: 1000 };

/** What following a folder works with. */
export type FollowDeps = {
  readonly folder: string;
  readonly timing: Timing;
  readonly reader: FolderReader;
  readonly watch: FolderWatch;
  readonly definitions: Pick<Definitions, 'giveUp' | 'missingSinceMs'>;
  /** Called with the objects that may have changed. */
  readonly onChanged: (keys: readonly WrittenKey[]) => void;
  /** Called whenever everything has been read. */
  readonly onComplete: () => void;
  readonly reportFailure: (failure: unknown) => void;
};

/** Keeps the definitions as the files are. Files are read in one run at a time; events meanwhile lead to the next run. */
export class FolderFollower {
  readonly #deps: FollowDeps;
  #paths = new Set<string>();
  #isAll = true;
  #firstEventMs: number | undefined;
  #isBlind = true;
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

  /** Takes an event: of a name in a folder, or of anything there. */
  note(folder: Folder, name: string | undefined): void {
    const isPlain = name !== undefined && folder.path !== undefined && !name.startsWith('..');
    // What is hidden matters only where links may lead through it.
    if (isPlain && name.startsWith('.')) return;
    if (isPlain) this.#paths.add(folder.path === '' ? name : `${folder.path}/${name}`);
    else this.#isAll = true;
    this.#firstEventMs ??= performance.now();
    if (!this.#running) this.#wait();
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
        [this.#isBlind, this.#scannedMs] = [true, performance.now()];
        this.#deps.reportFailure(failure);
      })
      .finally(() => {
        this.#running = undefined;
        this.#wait();
      });
  }

  async #read(): Promise<void> {
    const { reader, definitions, onChanged, onComplete, timing } = this.#deps;
    const [paths, isAll, startMs] = [this.#paths, this.#isAll, performance.now()];
    [this.#paths, this.#isAll, this.#firstEventMs] = [new Set(), false, undefined];
    const { keys, isComplete } = isAll ? await this.#readAll() : await reader.readSome(paths);
    if (isAll) [this.#isBlind, this.#scannedMs] = [!isComplete, performance.now()];
    else if (!isComplete) [this.#isAll, this.#firstEventMs] = [true, startMs];
    const isScan = isAll && isComplete;
    onChanged(isScan ? [...keys, ...definitions.giveUp(startMs - timing.goneMs)] : keys);
    if (isScan) onComplete();
  }

  /** The folder itself may be made, removed and replaced, which only the one around it notices. */
  async #readAll(): Promise<Reading> {
    const { folder, watch, reader } = this.#deps;
    const absolute = dirname(folder);
    const around = await stat(absolute).catch(() => undefined);
    watch.begin();
    if (around) watch.add({ absolute, identity: lifeOf(around), only: basename(folder) });
    try {
      return await reader.readAll();
    } finally {
      watch.end();
    }
  }

  /** Waits for what is due first: to read what changed, to give up what is missing, to read everything again. */
  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const { timing, watch, definitions } = this.#deps;
    const nowMs = performance.now();
    if (this.#firstEventMs !== undefined) {
      const latestMs = this.#firstEventMs + 3 * timing.quietMs - nowMs;
      this.#timer = setTimeout(() => this.#run(), Math.max(0, Math.min(timing.quietMs, latestMs)));
      return;
    }
    const isBlind = this.#isBlind || watch.isIncomplete;
    const rescanMs = this.#scannedMs + (isBlind ? timing.blindRescanMs : timing.rescanMs);
    const missingMs = isBlind ? Infinity : definitions.missingSinceMs() + timing.goneMs;
    const rescan = () => {
      this.#isAll = true;
      this.#run();
    };
    this.#timer = setTimeout(rescan, Math.max(0, Math.min(rescanMs, missingMs) - nowMs) + 1);
  }
}
