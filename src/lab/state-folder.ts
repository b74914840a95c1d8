import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, stopProcess } from './process.ts';
import type { ProcessRecord } from './process.ts';

/** What is kept on disk: every process from the moment it starts, and what they make up once it is whole. */
type State<Whole> = { readonly processes: readonly ProcessRecord[]; readonly whole?: Whole };

/** Where processes are noted as they start. */
export interface ProcessNotes {
  readonly path: string;
  addProcess(record: ProcessRecord): void;
}

/** The folder of what runs together: its state, its sockets and its logs. Only its owner can read it. */
export class StateFolder<Whole> implements ProcessNotes {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Makes the folder, empty. */
  create(): void {
    rmSync(this.path, { recursive: true, force: true });
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
  }

  /** Notes a process, so that it can be ended whatever happens next. */
  addProcess(record: ProcessRecord): void {
    this.#write({ processes: [...this.#read().processes, record] });
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

  /** Ends every process that was started here, the last first, and removes the folder. */
  async remove(): Promise<number> {
    const running = this.processes().filter(isRunning).reverse();
    for (const record of running) await stopProcess(record);
    rmSync(this.path, { recursive: true, force: true });
    return running.length;
  }

  #read(): State<Whole> {
    const file = join(this.path, 'state.json');
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as State<Whole>) : { processes: [] };
  }

  #write(state: State<Whole>): void {
    const file = join(this.path, 'state.json');
    writeFileSync(`${file}.new`, JSON.stringify(state, null, 2), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}
