import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { freePorts } from '../../lab/process/ports.ts';
import { bundled, productCommand } from '../bundled.ts';

/** What a relay of the bench is started with: all ports have the same target. */
export type RelayProgramOptions = {
  readonly socks: { readonly host: string; readonly port: number };
  readonly target: { readonly address: string; readonly port: number };
  readonly ports: readonly number[];
  readonly maxAssociations: number;
};

/** Datagrams at a rate, or as many as are answered with a number of each client on the way. */
export type Load = { readonly bytes: number; readonly seconds: number } & (
  { readonly rate: number } | { readonly window: number }
);

export type LoadResult = { readonly sent: number; readonly received: number; readonly tookMs: number };

/** A process of the bench, which prints a line when it is ready and answers each line with a line. */
export interface BenchProcess {
  /** Its first line. */
  readonly first: unknown;
  request(line: object): Promise<unknown>;
  /** Its CPU time, which other load of the machine hardly affects. */
  cpuMs(): number;
  /** Its resident memory. */
  bytes(): number;
  end(): Promise<void>;
}

/** Starts a program of this folder, bundled and with the flags of the product. */
export async function startProgram(name: string, argument: string): Promise<BenchProcess> {
  const [program = '', ...args] = productCommand(bundled(`relay/${name}`));
  const child = spawn(program, [...args, argument], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<unknown> => {
    const line = await lines.next();
    if (line.done) throw new Error(`${name} ended`);
    return JSON.parse(line.value);
  };
  const { pid } = child;
  return {
    first: await next(),
    request: line => {
      child.stdin.write(`${JSON.stringify(line)}\n`);
      return next();
    },
    cpuMs: () => cpuMsOf(pid),
    bytes: () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    end: async () => {
      child.stdin.end();
      await ended;
    },
  };
}

const MS_PER_TICK = 10;

function cpuMsOf(pid: number | undefined): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name, in parentheses, may have spaces in it.
  const fields = stat.replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK;
}

/** Clients, the relay, and a proxy that echoes. */
export type Scene = {
  readonly proxy: BenchProcess;
  readonly relay: BenchProcess;
  readonly generator: BenchProcess;
  readonly end: () => Promise<void>;
};

const TARGET = { address: '100.64.0.2', port: 7 };

/** Starts a relay with free ports, which clients use in turn. */
export async function startScene(options: {
  readonly portCount: number;
  readonly clients: number;
}): Promise<Scene> {
  const ports = await freePorts(options.portCount);
  const proxy = await startProgram('proxy-program', '');
  const socks = { host: '127.0.0.1', ...(proxy.first as { readonly port: number }) };
  const relayOptions: RelayProgramOptions = { socks, target: TARGET, ports, maxAssociations: 4096 };
  const relay = await startProgram('relay-program', JSON.stringify(relayOptions));
  const generator = await startProgram(
    'generator-program',
    JSON.stringify({ ports, clients: options.clients }),
  );
  return {
    proxy,
    relay,
    generator,
    end: async () => {
      for (const each of [generator, relay, proxy]) await each.end();
    },
  };
}
