import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, stopProcess } from './process.ts';
import type { ProcessRecord } from './process.ts';
import type { TailnetAddresses } from './tailnet.ts';

/** A device behind which there are services. */
export type RemoteNode = {
  readonly hostname: string;
  readonly fqdn: string;
  readonly address: string;
  /** Where its services are broken and mended. */
  readonly control: string;
  /** The port of each service, on the device's mesh address. */
  readonly ports: Readonly<Record<string, number>>;
  /** The certificates that its HTTPS and TLS services are signed with. */
  readonly caFile: string;
};

/** What a running lab is. */
export type Lab = {
  readonly tailnet: TailnetAddresses;
  /** The HTTP CONNECT and SOCKS5 proxy of the mesh node, as host:port. */
  readonly proxy: string;
  readonly remotes: readonly RemoteNode[];
};

/** What is kept on disk: every process from the moment it starts, and the lab once it is whole. */
type State = { readonly processes: readonly ProcessRecord[]; readonly lab?: Lab };

/** The lab's folder: its state, its sockets and its logs. Only its owner can read it. */
export class LabFolder {
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

  /** Notes that the lab is whole. */
  finish(lab: Lab): void {
    this.#write({ ...this.#read(), lab });
  }

  /** The processes that were started here. */
  processes(): readonly ProcessRecord[] {
    return this.#read().processes;
  }

  /** The lab, if it is whole and all of it runs. */
  running(): Lab | undefined {
    const { lab, processes } = this.#read();
    return processes.every(isRunning) ? lab : undefined;
  }

  /** Ends every process that was started here, the last first, and removes the folder. */
  async remove(): Promise<number> {
    const running = this.processes().filter(isRunning).reverse();
    for (const record of running) await stopProcess(record);
    rmSync(this.path, { recursive: true, force: true });
    return running.length;
  }

  #read(): State {
    const file = join(this.path, 'state.json');
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as State) : { processes: [] };
  }

  #write(state: State): void {
    const file = join(this.path, 'state.json');
    writeFileSync(`${file}.new`, JSON.stringify(state, null, 2), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}
