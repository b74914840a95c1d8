import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { codeOf, tryAll } from './errors.ts';
import { endStrays, isRunning, stopProcess } from './process.ts';
import type { ProcessRecord } from './process.ts';

/** What is kept on disk: every process from the moment it starts, and what they make up once it is whole. */
type State<Whole> = { readonly processes: readonly ProcessRecord[]; readonly whole?: Whole };

/** So named that no other program has one: where it is, everything belongs to us. */
const STATE_FILE = 'mesh-gateway-state.json';

/** Where processes are noted as they start. */
export interface ProcessNotes {
  readonly path: string;
  addProcess(record: ProcessRecord): void;
  removeProcess(record: ProcessRecord): void;
}

/** The folder of what runs together: its state, its sockets and its logs. Only its owner can read it. */
export class StateFolder<Whole> implements ProcessNotes {
  readonly path: string;

  constructor(path: string) {
    this.path = resolve(path);
  }

  /** Makes the folder, empty. */
  create(): void {
    this.#expectOwn();
    this.#clear();
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    this.#write({ processes: [] });
  }

  /** Notes a process, so that it can be ended whatever happens next. */
  addProcess(record: ProcessRecord): void {
    this.#write({ processes: [...this.#read().processes, record] });
  }

  /** Forgets a process that was ended on purpose while the others go on. */
  removeProcess({ pid }: ProcessRecord): void {
    this.#write({ processes: this.#read().processes.filter(record => record.pid !== pid) });
  }

  /** Notes that all of it is there. */
  finish(whole: Whole): void {
    this.#write({ ...this.#read(), whole });
  }

  /** The processes that were started here. */
  processes(): readonly ProcessRecord[] {
    return this.#read().processes;
  }

  /** What runs here, if it is whole and all of it runs. */
  running(): Whole | undefined {
    const { whole, processes } = this.#read();
    return processes.every(isRunning) ? whole : undefined;
  }

  /**
   * Ends every process that was started here, the last first, and removes the folder. A process that does not end keeps
   * no other from being ended, but the folder stays, so that another attempt finds it.
   */
  async remove(): Promise<number> {
    this.#expectOwn();
    const running = this.processes().filter(isRunning).reverse();
    let strays = 0;
    const endOthers = async () => {
      if (this.#isOwn()) strays = await endStrays(this.path);
    };
    await tryAll([...running.map(record => () => stopProcess(record)), endOthers]);
    this.#clear();
    return running.length + strays;
  }

  /** A folder that someone named by mistake is neither emptied nor searched for processes. */
  #expectOwn(): void {
    if (this.#isOwn() || this.#entries().length === 0) return;
    throw new Error(`${this.path} holds other things: name a folder that is empty or does not exist`);
  }

  #isOwn(): boolean {
    return this.#entries().some(name => name.startsWith(STATE_FILE));
  }

  /** What says that the folder is ours goes last, in case that we are killed before. */
  #clear(): void {
    const others = this.#entries().filter(name => name !== STATE_FILE);
    for (const name of others) rmSync(join(this.path, name), { recursive: true, force: true });
    rmSync(this.path, { recursive: true, force: true });
  }

  #entries(): readonly string[] {
    return this.#look([], () => readdirSync(this.path));
  }

  #read(): State<Whole> {
    const file = join(this.path, STATE_FILE);
    return this.#look({ processes: [] }, () => JSON.parse(readFileSync(file, 'utf8')) as State<Whole>);
  }

  /** What is not there is another thing than what we may not see. */
  #look<T>(ifMissing: T, look: () => T): T {
    try {
      return look();
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
