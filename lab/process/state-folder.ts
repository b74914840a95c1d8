import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { codeOf, tryAll } from './errors.ts';
import { killStrays, isRunning, stopProcess } from './process.ts';
import type { ProcessRecord } from './process.ts';

/** What is kept on disk: every process from its start on, and their description once all of them run. */
type State<Whole> = { readonly processes: readonly ProcessRecord[]; readonly whole?: Whole };

/** A name that no other program uses: a folder with this file may be emptied. */
const STATE_FILE = 'mesh-gateway-state.json';

/** Records processes as they start. */
export interface ProcessNotes {
  readonly path: string;
  addProcess(record: ProcessRecord): void;
  removeProcess(record: ProcessRecord): void;
}

/** The folder of processes that run together: their state, sockets and logs. Only its owner can read it. */
export class StateFolder<Whole> implements ProcessNotes {
  readonly path: string;

  constructor(path: string) {
    this.path = resolve(path);
  }

  /** Creates the folder, empty. */
  create(): void {
    this.#expectOwn();
    this.#clear();
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    this.#write({ processes: [] });
  }

  /** Records a process, so that it can be ended later. */
  addProcess(record: ProcessRecord): void {
    this.#write({ processes: [...this.#read().processes, record] });
  }

  /** Removes a process that was ended on purpose while the others continue. */
  removeProcess({ pid }: ProcessRecord): void {
    this.#write({ processes: this.#read().processes.filter(record => record.pid !== pid) });
  }

  /** Records that all processes run. */
  finish(whole: Whole): void {
    this.#write({ ...this.#read(), whole });
  }

  /** The processes that were started here. */
  processes(): readonly ProcessRecord[] {
    return this.#read().processes;
  }

  /** The description of the processes, if the start was complete and all of them still run. */
  running(): Whole | undefined {
    const { whole, processes } = this.#read();
    return processes.every(isRunning) ? whole : undefined;
  }

  /**
   * Ends every process that was started here, the last first, and removes the folder; returns how many there were. If one
   * does not end, the others are still ended, and the folder stays for another attempt.
   */
  async remove(): Promise<number> {
    this.#expectOwn();
    const running = this.processes().filter(isRunning).reverse();
    let strays = 0;
    const endOthers = async () => {
      if (this.#isOwn()) strays = await killStrays(this.path);
    };
    await tryAll([...running.map(record => () => stopProcess(record)), endOthers]);
    this.#clear();
    return running.length + strays;
  }

  /** A folder that was named by mistake is neither emptied nor searched for processes. */
  #expectOwn(): void {
    if (this.#isOwn() || this.#entries().length === 0) return;
    throw new Error(`${this.path} holds other things: name a folder that is empty or does not exist`);
  }

  #isOwn(): boolean {
    return this.#entries().some(name => name.startsWith(STATE_FILE));
  }

  /** The state file is removed last, in case this process is killed before. */
  #clear(): void {
    const others = this.#entries().filter(name => name !== STATE_FILE);
    for (const name of others) rmSync(join(this.path, name), { recursive: true, force: true });
    rmSync(this.path, { recursive: true, force: true });
  }

  #entries(): readonly string[] {
    return this.#ifReadable([], () => readdirSync(this.path));
  }

  #read(): State<Whole> {
    const file = join(this.path, STATE_FILE);
    return this.#ifReadable({ processes: [] }, () => JSON.parse(readFileSync(file, 'utf8')) as State<Whole>);
  }

  /** Distinguishes a missing file from one that this user may not read. */
  #ifReadable<T>(ifMissing: T, read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return ifMissing;
      if (codeOf(error) !== 'EACCES') throw error;
      throw new Error(`${this.path} belongs to another user: this needs root`, { cause: error });
    }
  }

  #write(state: State<Whole>): void {
    const file = join(this.path, STATE_FILE);
    writeFileSync(`${file}.new`, JSON.stringify(state, null, 2), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}
