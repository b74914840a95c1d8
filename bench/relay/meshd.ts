import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SocksClient } from 'socks';
import { startLab } from '../../lab/lab.ts';
import { guard } from '../../lab/process/guard.ts';
import { freePorts } from '../../lab/process/ports.ts';
import { LabFolder } from '../../lab/state.ts';
import type { Lab } from '../../lab/state.ts';
import { locatePrograms } from '../bundled.ts';
import { commandLine } from '../../lab/cluster/use-cluster.ts';
import { median } from '../figures.ts';
import type { Figure } from '../figures.ts';
import { startProgram } from '../bench-process.ts';
import { openPath } from './path.ts';
import type { Path } from './path.ts';
import type { Load, LoadResult } from './scene.ts';

const [WARM_UP, DATAGRAMS] = [500, 5_000];
const BYTES = 512;
const PAYLOAD = Buffer.alloc(BYTES, 'x');
const TIMEOUT_MS = 5000;

/** Clients of the rate, and what each has on the way. */
const [CLIENTS, WINDOW, SECONDS] = [32, 4, 5];

/** How long the loads last, with the one that warms up. */
export const MESHD_MS = 1000 * (1 + 2 * SECONDS);

/** Latency and rate through a real meshd to a device. */
export async function meshdFigures(): Promise<readonly Figure[]> {
  const folder = new LabFolder(mkdtempSync(join(tmpdir(), 'mesh-lab-')));
  const down = commandLine('lab/commands/lab.ts', 'down', '--folder', folder.path);
  const cleaner = guard(down, process.cwd());
  try {
    const lab = await startLab({
      folder: folder.path,
      pathOf: locatePrograms(),
      searchPath: '/usr/bin:/bin',
      onStep: () => undefined,
      stop: new AbortController().signal,
    });
    return await figuresIn(lab);
  } finally {
    await folder.remove();
    cleaner.release();
  }
}

async function figuresIn({ proxy, remotes: [remote] }: Lab): Promise<readonly Figure[]> {
  if (!remote) throw new Error('the lab has no remote node');
  const socks = { host: '127.0.0.1', port: Number(proxy.split(':').at(-1)) };
  // The device forwards to the same port of this machine. The socket has a larger buffer than those of the lab's services.
  const service = await startProgram('relay/proxy-program', '');
  const { udpPort } = service.first as { readonly udpPort: number };
  const target = { address: remote.address, port: udpPort };
  const [port = 0] = await freePorts(1);
  const options = { socks, target, ports: [port], maxAssociations: 64 };
  const relay = await startProgram('relay/relay-program', JSON.stringify(options));
  const received = async () => ((await service.request({})) as { readonly frames: number }).frames;
  const paths = { alone: await openProxyPath(socks, target), relayed: await openPath(port, PAYLOAD) };
  try {
    return [...(await latencyFigures(paths, received)), ...(await rateFigures(port, received))];
  } finally {
    for (const path of Object.values(paths)) path.close();
    for (const each of [relay, service]) await each.end();
  }
}

/** With and without the relay in turns, one datagram at a time, so that other load affects both alike. */
async function latencyFigures(
  paths: Readonly<Record<'alone' | 'relayed', Path>>,
  received: () => Promise<number>,
): Promise<readonly Figure[]> {
  const took = { alone: [] as number[], relayed: [] as number[] };
  for (let turn = 0; turn < WARM_UP + DATAGRAMS; turn++) {
    for (const name of ['alone', 'relayed'] as const) {
      const ms = await paths[name].exchange();
      if (turn >= WARM_UP) took[name].push(ms);
    }
  }
  const count = await received();
  if (count < 2 * (WARM_UP + DATAGRAMS)) throw new Error(`the service received only ${count} datagrams`);
  const [alone, relayed] = [median(took.alone), median(took.relayed)];
  return [
    { name: 'datagram and reply through meshd alone, p50', value: alone, unit: 'ms' },
    { name: 'the same through the relay and meshd, p50', value: relayed, unit: 'ms' },
    { name: 'latency that the relay adds, p50', value: relayed - alone, unit: 'ms', aim: 0.3 },
  ];
}

/** The most that relay, meshd and a device on this machine forward together, and what is lost at half of it. */
async function rateFigures(port: number, received: () => Promise<number>): Promise<readonly Figure[]> {
  const generator = await startProgram(
    'relay/generator-program',
    JSON.stringify({ ports: [port], clients: CLIENTS }),
  );
  const run = async (load: Load) => (await generator.request(load)) as LoadResult;
  try {
    await run({ bytes: BYTES, seconds: 1, window: 1 });
    const most = await run({ bytes: BYTES, seconds: SECONDS, window: WINDOW });
    const rate = Math.round((1000 * most.received) / most.tookMs);
    await received();
    const half = await run({ bytes: BYTES, seconds: SECONDS, rate: Math.round(rate / 2) });
    const count = await received();
    if (count < half.received) throw new Error(`the service received only ${count} datagrams`);
    return [
      { name: 'most datagrams with replies through relay and meshd', value: rate, unit: '/s' },
      { name: `lost at half of it in ${SECONDS} s`, value: half.sent - half.received, unit: '', aim: 0 },
    ];
  } finally {
    await generator.end();
  }
}

type Address = { readonly address: string; readonly port: number };

/** Datagrams straight to the proxy. */
async function openProxyPath(
  socks: { readonly host: string; readonly port: number },
  target: Address,
): Promise<Path> {
  const client = new SocksClient({
    proxy: { ...socks, type: 5 },
    command: 'associate',
    destination: { host: '0.0.0.0', port: 0 },
  });
  const established = once(client, 'established', { signal: AbortSignal.timeout(TIMEOUT_MS) });
  client.connect();
  const [{ socket, remoteHost }] = (await established) as [
    { readonly socket: Socket; readonly remoteHost: { readonly port: number } },
  ];
  const remote = { host: target.address, port: target.port };
  const path = await openPath(
    remoteHost.port,
    SocksClient.createUDPFrame({ remoteHost: remote, data: PAYLOAD }),
  );
  return {
    ...path,
    close: () => {
      path.close();
      socket.destroy();
    },
  };
}
