import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandLine } from '../../lab/cluster/use-cluster.ts';
import { startLab } from '../../lab/lab.ts';
import { guard } from '../../lab/process/guard.ts';
import { freePorts } from '../../lab/process/ports.ts';
import { starterIn } from '../../lab/process/starter.ts';
import { until } from '../../lab/process/wait.ts';
import { LabFolder } from '../../lab/state.ts';
import type { Lab } from '../../lab/state.ts';
import { joinTailnet, startDaemon } from '../../lab/tailnet/mesh-node.ts';
import { addJoinKey, listNodes } from '../../lab/tailnet/tailnet.ts';
import { startProgram } from '../bench-process.ts';
import type { BenchProcess } from '../bench-process.ts';
import { locatePrograms } from '../bundled.ts';

export type Address = { readonly host: string; readonly port: number };

/** What the service does with a connection, by its first byte: returns each byte, sends, or only receives. */
export const MODES = { echo: 'e', down: 'd', up: 'u' } as const;

type Mode = keyof typeof MODES;

/** How many connections the load opens at once. */
export const AT_ONCE = 16;

/** What the load does. */
export type LoadCommand =
  | {
      readonly do: 'open';
      readonly proxy: Address;
      readonly target: Address;
      readonly mode: Mode;
      readonly streams: number;
    }
  | { readonly do: 'report' }
  | { readonly do: 'close' }
  | { readonly do: 'connect'; readonly proxy: Address; readonly target: Address; readonly ms: number }
  | {
      readonly do: 'exchange';
      readonly proxies: readonly Address[];
      readonly target: Address;
      readonly warmUp: number;
      readonly count: number;
    };

export type ConnectResult = {
  readonly made: number;
  readonly failed: number;
  readonly lastFailure: string;
  readonly tookMs: number;
};

/** Milliseconds of a round trip, by the proxy. */
export type ExchangeResult = { readonly p50: readonly number[] };

/** What a front of the bench is started with. */
export type FrontProgramOptions = {
  /** Of the LocalAPI. */
  readonly socket: string;
  /** The proxy of tailscaled, which also speaks SOCKS5. */
  readonly socks: Address;
  readonly target: Address;
  /** A device that returns datagrams, to which `relayPort` leads. */
  readonly datagrams: Address;
  readonly relayPort: number;
  readonly maxConnections: number;
};

/** The two ways to a service: through the front, and through the proxy of the same tailscaled alone. */
export type Way = 'front' | 'alone';

export type Scene = {
  readonly proxies: Readonly<Record<Way, Address>>;
  /** The service, on the address of its device. */
  readonly target: Address;
  /** Of the process of the front: a port that leads datagrams to a service, and the listener of a VIP service. */
  readonly relayPort: number;
  readonly hop: Address;
  readonly front: BenchProcess;
  readonly load: BenchProcess;
  readonly service: BenchProcess;
  /** The process of the tailscaled. */
  readonly meshdPid: number;
};

/** The default of a mesh pod. */
const MAX_CONNECTIONS = 10_000;

/** Calls `use` with a tailnet, a tailscaled with a front, and a device with a service; ends all of them after it. */
export async function inScene<T>(use: (scene: Scene) => Promise<T>): Promise<T> {
  const folder = new LabFolder(mkdtempSync(join(tmpdir(), 'mesh-lab-')));
  const down = commandLine('lab/commands/lab.ts', 'down', '--folder', folder.path);
  const cleaner = guard(down, process.cwd());
  const programs: BenchProcess[] = [];
  const start = async (name: string, argument: string) => {
    const program = await startProgram(name, argument);
    programs.push(program);
    return program;
  };
  try {
    return await use(await sceneIn(folder, start));
  } finally {
    for (const program of programs.reverse()) await program.end();
    await folder.remove();
    cleaner.release();
  }
}

type StartProgram = (name: string, argument: string) => Promise<BenchProcess>;

async function sceneIn(folder: LabFolder, start: StartProgram): Promise<Scene> {
  const lab = await startLab({
    folder: folder.path,
    pathOf: locatePrograms(),
    searchPath: SEARCH_PATH,
    onStep: () => undefined,
    stop: new AbortController().signal,
  });
  const [remote] = lab.remotes;
  if (!remote) throw new Error('the lab has no remote node');
  const meshd = await startMeshd(folder, lab);
  // The device forwards to the same port of this machine.
  const service = await start('front/service-program', '');
  const { udpPort } = (await start('relay/proxy-program', '')).first as { readonly udpPort: number };
  const target = { host: remote.address, port: portOf(service) };
  const [relayPort = 0] = await freePorts(1);
  const options: FrontProgramOptions = {
    socket: meshd.socket,
    socks: meshd.proxy,
    target,
    datagrams: { host: remote.address, port: udpPort },
    relayPort,
    maxConnections: MAX_CONNECTIONS,
  };
  const front = await start('front/front-program', JSON.stringify(options));
  const { hop } = front.first as { readonly hop: number };
  return {
    proxies: { front: { host: '127.0.0.1', port: portOf(front) }, alone: meshd.proxy },
    target,
    relayPort,
    hop: { host: '127.0.0.2', port: hop },
    front,
    service,
    load: await start('front/load-program', ''),
    meshdPid: meshd.pid,
  };
}

const SEARCH_PATH = '/usr/bin:/bin';
const HOSTNAME = 'meshd-front';

/** A tailscaled whose LocalAPI and proxy are used; the one of the lab keeps its socket to itself. */
async function startMeshd(folder: LabFolder, { tailnet }: Lab) {
  const starter = starterIn(folder, locatePrograms(), SEARCH_PATH);
  const [port = 0] = await freePorts(1);
  const proxy = { host: '127.0.0.1', port };
  const daemon = startDaemon(starter, { hostname: HOSTNAME, proxy: `${proxy.host}:${port}` });
  const { key } = await addJoinKey(tailnet.admin, { tags: ['tag:mesh'] });
  await joinTailnet(starter, daemon, tailnet, key);
  await until(`${HOSTNAME} to be reachable`, async () => {
    const nodes = await listNodes(tailnet.admin);
    return nodes.some(node => node.hostname === HOSTNAME && node.reachable);
  });
  return { socket: daemon.socket, pid: daemon.pid, proxy };
}

function portOf({ first }: BenchProcess): number {
  return (first as { readonly port: number }).port;
}
