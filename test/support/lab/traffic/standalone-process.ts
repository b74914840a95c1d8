import { readFileSync } from 'node:fs';
import { freePorts } from '../../../../lab/process/ports.ts';
import { markOf } from '../../../../lab/process/process-table.ts';
import {
  isRunning,
  withLogTail,
  startProcess,
  stopProcess,
  tailOf,
} from '../../../../lab/process/process.ts';
import type { ProcessRecord } from '../../../../lab/process/process.ts';
import { until } from '../../../../lab/process/wait.ts';
import { PROJECT, typescript } from '../command-line.ts';

/** The tested process: operator side and extension server in one, on a folder. */
export interface StandaloneProcess {
  /** The address of hooks and EDS, as host:port. */
  readonly address: string;
  /** Its log. */
  readonly log: string;
  /** Starts it if it is not running, and waits until it is ready; `variables` are added to earlier ones. */
  start(variables?: Readonly<Record<string, string>>): Promise<void>;
  /** Sends SIGTERM, and waits for its end. */
  stop(): Promise<void>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Sends SIGSTOP. */
  freeze(): void;
  /** Sends SIGCONT. */
  thaw(): void;
  /** Its metrics by name and labels, as they are written: `name{label="value"}`. */
  metrics(): Promise<ReadonlyMap<string, number>>;
  /** Its resident memory in bytes. */
  memory(): number;
}

/** Its options. */
export type StandaloneOptions = {
  /** Standalone if not given. */
  readonly command?: 'standalone' | 'extension-server';
  /** The folder with objects. */
  readonly resources: string;
  /** The folder that Envoy Gateway reads. */
  readonly generated: string;
  readonly state: string;
  readonly log: string;
  /** The folder of the lab; it ends with the lab. */
  readonly labFolder: string;
  readonly dataPath: 'Proxy' | 'Direct';
  readonly variables: Readonly<Record<string, string>>;
  readonly searchPath: string;
};

/** Chooses its ports, which it keeps for all starts; does not start it. */
export async function standaloneProcess(options: StandaloneOptions): Promise<StandaloneProcess> {
  const addresses = await freeAddresses();
  let record: ProcessRecord | undefined;
  const signal = (name: NodeJS.Signals) => process.kill(record?.pid ?? Number.NaN, name);
  const ended = () => Promise.resolve(record && isRunning(record) ? undefined : true);
  return {
    address: addresses.grpc,
    log: options.log,
    start: async (variables = {}) => {
      if (record && isRunning(record)) return;
      const merged = { ...options, variables: { ...options.variables, ...variables } };
      record = startProcess(specOf(merged, addresses));
      await withLogTail(record, until('it to be ready', isReady(record, addresses.health)));
    },
    stop: async () => {
      if (record) await stopProcess(record);
    },
    kill: async () => {
      signal('SIGKILL');
      await until('it to end', ended, { everyMs: 5 });
    },
    freeze: () => void signal('SIGSTOP'),
    thaw: () => void signal('SIGCONT'),
    metrics: () => readMetrics(addresses),
    memory: () => memoryOf(record?.pid ?? Number.NaN),
  };
}

type Addresses = { readonly grpc: string; readonly health: string; readonly metrics: string };

/** Addresses on free ports. */
export async function freeAddresses(): Promise<Addresses> {
  const [grpc = '', health = '', metrics = ''] = (await freePorts(3)).map(port => `127.0.0.1:${port}`);
  return { grpc, health, metrics };
}

/** The metrics of a process by name and labels, as they are written: `name{label="value"}`. */
export async function readMetrics({
  metrics,
}: Pick<Addresses, 'metrics'>): Promise<ReadonlyMap<string, number>> {
  return samplesOf(await (await fetch(`http://${metrics}/metrics`)).text());
}

/** The settings of standalone as environment variables. */
export function variablesOf(
  options: Omit<StandaloneOptions, 'log' | 'labFolder' | 'searchPath'>,
  addresses: Addresses,
): Readonly<Record<string, string>> {
  return {
    RESOURCES_DIR: options.resources,
    GATEWAY_DIR: options.generated,
    STATE_DIR: options.state,
    GRPC_ADDRESS: addresses.grpc,
    EXTENSION_SERVER_ADDRESS: addresses.grpc,
    HEALTH_ADDRESS: addresses.health,
    METRICS_ADDRESS: addresses.metrics,
    DATA_PATH: options.dataPath,
    ...options.variables,
  };
}

function specOf(options: StandaloneOptions, addresses: Addresses): Parameters<typeof startProcess>[0] {
  const [command = '', ...args] = typescript('src/cli.ts', options.command ?? 'standalone');
  const environment = {
    PATH: options.searchPath,
    ...markOf(options.labFolder),
    ...variablesOf(options, addresses),
  };
  return {
    name: options.command ?? 'standalone',
    command,
    args,
    environment,
    folder: PROJECT,
    log: options.log,
  };
}

function isReady(record: ProcessRecord, health: string) {
  return async () => {
    if (!isRunning(record)) throw new Error(`it has ended:\n${tailOf(record)}`);
    return (await fetch(`http://${health}/readyz`)).ok;
  };
}

/** The samples in the text format of Prometheus. */
function samplesOf(text: string): ReadonlyMap<string, number> {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

const PAGE_BYTES = 4_096;

function memoryOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
}
