import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { guard } from '../../lab/process/guard.ts';
import { freePorts } from '../../lab/process/ports.ts';
import { isRunning, withLogTail, startProcess, stopProcess } from '../../lab/process/process.ts';
import type { ProcessRecord } from '../../lab/process/process.ts';
import { productCommand } from '../bundled.ts';
import type { World } from './objects.ts';

/** Client and server have a core each; of the two servers, which share one, one is idle. */
const [SERVER_CORE, CLIENT_CORE] = ['0', '1'];

/** What all measurements need. */
export type Stage = {
  /** Our server, bundled with the options with which it ships. */
  readonly bundle: string;
  /** The Go program, which is the other server and the client. */
  readonly peer: string;
  /** A folder for what they write. */
  readonly root: string;
  readonly world: World;
};

/** A server that is measured. */
export interface Server {
  /** The program that calls it. */
  readonly client: string;
  /** The address at which it answers calls. */
  readonly address: string;
  readonly startedAtUnixMs: number;
  /** Its current resident memory. */
  megabytes(): number;
  /** Its CPU time, which other load of the machine does not affect. */
  processorMs(): number;
  /** Waits for a promise; adds the tail of the server's log to its error. */
  watch<T>(wait: Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** Starts our extension server on the objects; resolves once it has read them. */
export async function startOurs(stage: Stage): Promise<Server> {
  const { bundle, world } = stage;
  const [port, metrics, health] = await freePorts(3);
  return start('ours', stage, [...productCommand(bundle), 'extension-server'], port, {
    RESOURCES_DIR: world.folder,
    GRPC_ADDRESS: `127.0.0.1:${port}`,
    METRICS_ADDRESS: `127.0.0.1:${metrics}`,
    HEALTH_ADDRESS: `127.0.0.1:${health}`,
    LOG_LEVEL: 'warn',
  });
}

/** Starts the server that ours is compared with, on the same objects. */
export async function startPeer(stage: Stage): Promise<Server> {
  const [port] = await freePorts(1);
  const args = ['--address', `127.0.0.1:${port}`, '--resources', stage.world.resources];
  return start('peer', stage, [stage.peer, 'serve', ...args], port, {});
}

function start(
  name: string,
  { peer, root }: Stage,
  command: readonly string[],
  port: number | undefined,
  environment: Readonly<Record<string, string>>,
): Server {
  const startedAtUnixMs = performance.timeOrigin + performance.now();
  const record = startProcess({
    name,
    command: 'taskset',
    args: ['--cpu-list', SERVER_CORE, ...command],
    environment,
    folder: process.cwd(),
    log: join(root, `${name}.log`),
  });
  const cleaner = guard(['kill', '-KILL', '--', `-${record.pid}`], process.cwd());
  return {
    client: peer,
    address: `127.0.0.1:${port}`,
    startedAtUnixMs,
    megabytes: () => megabytesOf(record),
    processorMs: () => processorMsOf(record),
    watch: wait => withLogTail(record, wait),
    stop: async () => {
      if (!isRunning(record)) throw new Error(`${name} has ended by itself`);
      await stopProcess(record);
      cleaner.release();
    },
  };
}

function megabytesOf({ pid }: ProcessRecord): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

const MS_PER_TICK = 10;

function processorMsOf({ pid }: ProcessRecord): number {
  // The name, in parentheses, may have spaces in it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

function clientCommand(
  mode: string,
  { client, address }: Server,
  args: readonly string[],
): readonly string[] {
  return ['--cpu-list', CLIENT_CORE, client, mode, '--address', address, ...args];
}

/** Runs the client against a server to its end, and returns its report. */
export async function runClient<T>(
  mode: string,
  server: Server,
  args: readonly (string | number)[] = [],
): Promise<T> {
  const ran = promisify(execFile)('taskset', [...clientCommand(mode, server, args.map(String))]);
  const { stdout } = await server.watch(ran);
  return JSON.parse(stdout) as T;
}

/** A running client, which answers each line on its standard input with a line. */
export interface RunningClient<First> {
  readonly first: First;
  request<T>(line: object): Promise<T>;
  end(): Promise<void>;
}

/** Starts the client against a server, and waits for its first line. */
export async function startClient<First>(
  mode: string,
  server: Server,
  args: readonly (string | number)[],
): Promise<RunningClient<First>> {
  const command = [...clientCommand(mode, server, args.map(String))];
  const child = spawn('taskset', command, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exit = new Promise<void>(resolve => child.once('exit', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async <T>(): Promise<T> => {
    const line = await lines.next();
    if (line.done) throw new Error(`the client ended in mode ${mode}`);
    return JSON.parse(line.value) as T;
  };
  return {
    first: await server.watch(next<First>()),
    request: line => {
      child.stdin.write(`${JSON.stringify(line)}\n`);
      return server.watch(next());
    },
    end: async () => {
      child.stdin.end();
      await exit;
    },
  };
}
