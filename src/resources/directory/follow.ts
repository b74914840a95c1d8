import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { Key } from '../../api/key.ts';
import type { Definitions } from './definitions.ts';
import type { FolderReader, Look } from './reader.ts';
import { lifeOf } from './scan.ts';
import type { Folder } from './scan.ts';
import type { FolderWatch } from './watch.ts';

/** How long what waits for what. */
export type Patience = {
  /** A file is read when nothing has happened for so long, and after three times this in any case. */
  readonly quietMs: number;
  /** An object is gone when no file has said it for so long. */
  readonly goneMs: number;
  /** Everything is looked at so often, in case that something went unseen. */
  readonly rescanMs: number;
  /** The same while it is known that not all is seen. */
  readonly blindRescanMs: number;
};

export const PATIENCE: Patience = { quietMs: 10, goneMs: 1000, rescanMs: 10_000, blindRescanMs: 1000 };

/** What following a folder needs of the rest. */
export type FollowPorts = {
  readonly folder: string;
  readonly patience: Patience;
  readonly reader: FolderReader;
  readonly watch: FolderWatch;
  readonly definitions: Pick<Definitions, 'giveUp' | 'missingSinceMs'>;
  /** Takes in which objects something may have changed. */
  readonly look: (keys: readonly Key[]) => void;
  /** Told when everything has been looked at. */
  readonly tellComplete: () => Promise<void>;
  readonly reportFailure: (failure: unknown) => void;
};

/** Keeps the definitions as the files are. One look is taken at a time; what happens meanwhile is looked at after. */
export class FolderFollower {
  readonly #ports: FollowPorts;
  #paths = new Set<string>();
  #isAll = false;
  #firstEventMs: number | undefined;
  #isBlind = true;
  #hasSeenAll = false;
  #lookedMs = 0;
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(ports: FollowPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#isAll = true;
    this.#run();
  }

  /** Something happened in a folder. */
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
    this.#running ??= this.#work().finally(() => {
      this.#running = undefined;
      this.#wait();
    });
  }

  async #work(): Promise<void> {
    try {
      await this.#lookOnce();
    } catch (failure) {
      [this.#isBlind, this.#lookedMs] = [true, performance.now()];
      this.#ports.reportFailure(failure);
    }
  }

  async #lookOnce(): Promise<void> {
    const { reader, definitions, look, tellComplete } = this.#ports;
    const [paths, isAll, startMs] = [this.#paths, this.#isAll, performance.now()];
    [this.#paths, this.#isAll, this.#firstEventMs] = [new Set(), false, undefined];
    const { keys, isComplete } = isAll ? await this.#lookAtAll() : await reader.lookAt(paths);
    if (!isAll) {
      look(keys);
      if (!isComplete) [this.#isAll, this.#firstEventMs] = [true, startMs];
      return;
    }
    [this.#isBlind, this.#lookedMs] = [!isComplete, performance.now()];
    if (!isComplete) {
      look(keys);
      return;
    }
    // What went while nobody looked is not on its way to another file.
    const goneMs = this.#hasSeenAll ? startMs - this.#ports.patience.goneMs : Infinity;
    this.#hasSeenAll = true;
    look([...keys, ...definitions.giveUp(goneMs)]);
    await tellComplete();
  }

  /** The folder itself may come, go and be replaced, which only the one around it tells. */
  async #lookAtAll(): Promise<Look> {
    const { folder, watch, reader } = this.#ports;
    const absolute = dirname(folder);
    const around = await stat(absolute).catch(() => undefined);
    watch.begin();
    if (around) watch.add({ absolute, identity: lifeOf(around), only: basename(folder) });
    try {
      return await reader.lookAtAll();
    } finally {
      watch.end();
    }
  }

  /** Waits for what is due first: to read what changed, to give up what is missing, to look at everything again. */
  #wait(): void {
    if (this.#isClosed) return;
    const { patience, watch, definitions } = this.#ports;
    const nowMs = performance.now();
    clearTimeout(this.#timer);
    if (this.#firstEventMs !== undefined) {
      const waitedMs = nowMs - this.#firstEventMs;
      const waitMs = Math.min(patience.quietMs, 3 * patience.quietMs - waitedMs);
      this.#timer = setTimeout(() => this.#run(), Math.max(0, waitMs));
      return;
    }
    const isBlind = this.#isBlind || watch.isIncomplete;
    const rescanMs = this.#lookedMs + (isBlind ? patience.blindRescanMs : patience.rescanMs);
    const missingMs = isBlind ? Infinity : (definitions.missingSinceMs() ?? Infinity) + patience.goneMs;
    const look = () => {
      this.#isAll = true;
      this.#run();
    };
    this.#timer = setTimeout(look, Math.max(0, Math.min(rescanMs, missingMs) - nowMs) + 1);
  }
}
