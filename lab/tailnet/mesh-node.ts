import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../process/errors.ts';
import { tailOf } from '../process/process.ts';
import type { ProcessRecord } from '../process/process.ts';
import { runProgram } from '../process/starter.ts';
import type { Starter } from '../process/starter.ts';
import { addJoinKey, listNodes } from './tailnet.ts';
import type { TailnetAddresses, TailnetNode } from './tailnet.ts';
import { until } from '../process/wait.ts';

/** A device to start. */
export type NodeOptions = {
  readonly hostname: string;
  readonly tags: readonly string[];
  /** The address of its HTTP CONNECT and SOCKS5 proxy, if it offers one; it then refuses all connections of the tailnet. */
  readonly proxy?: string;
  /** The network interface that puts this machine on the tailnet; creating it needs privileges. */
  readonly networkInterface?: string;
};

/** Starts a device, joins it with a key of its own, and waits until others can reach it; unprivileged unless it has an interface. */
export async function startMeshNode(
  starter: Starter,
  tailnet: TailnetAddresses,
  options: NodeOptions,
): Promise<TailnetNode> {
  const daemon = startDaemon(starter, options);
  const { hostname, tags } = options;
  try {
    const { key } = await addJoinKey(tailnet.admin, { tags });
    await joinTailnet(starter, daemon, tailnet, key);
    return await reachableNode(tailnet, hostname);
  } catch (error) {
    throw new Error(`${hostname} did not join: ${messageOf(error)}\n${tailOf(daemon)}`, { cause: error });
  }
}

/** The daemon of a device, the socket for its command line, and whether it refuses all connections of the tailnet. */
export type Daemon = ProcessRecord & { readonly socket: string; readonly shieldsUp: boolean };

/** Starts the daemon of a device that has not joined a tailnet yet. */
export function startDaemon(starter: Starter, options: Omit<NodeOptions, 'tags'>): Daemon {
  const { hostname, proxy, networkInterface = 'userspace-networking' } = options;
  const folder = join(starter.folder, hostname);
  mkdirSync(folder, { mode: 0o700, recursive: true });
  const socket = join(folder, 'tailscaled.sock');
  const proxies =
    proxy === undefined ? [] : [`--socks5-server=${proxy}`, `--outbound-http-proxy-listen=${proxy}`];
  const record = starter.start(
    hostname,
    'tailscaled',
    [`--tun=${networkInterface}`, `--statedir=${folder}`, `--socket=${socket}`, '--port=0', ...proxies],
    {
      TS_NO_LOGS_NO_SUPPORT: 'true',
      TS_DISABLE_PORTMAPPER: '1',
      TS_LOGS_DIR: folder,
      TS_ASSUME_NETWORK_UP_FOR_TEST: '1',
    },
  );
  return { ...record, socket, shieldsUp: proxy !== undefined };
}

/**
 * Joins a daemon with a key, and fails with the reason if it is rejected. The key is passed in a file with mode 0600, since
 * arguments are visible in the process table.
 */
export async function joinTailnet(
  starter: Starter,
  { name, socket, shieldsUp }: Daemon,
  tailnet: TailnetAddresses,
  key: string,
): Promise<void> {
  const tailscale = (...args: readonly string[]) =>
    runProgram(starter, 'tailscale', [`--socket=${socket}`, ...args]).then(() => true as const);
  const answers = () => tailscale('status', '--json');
  await until('tailscaled to answer', answers);
  const keyFile = `${socket}.key`;
  writeFileSync(keyFile, key, { mode: 0o600 });
  // It forwards connections of the tailnet to the same port of 127.0.0.1, where its proxy listens.
  const shields = shieldsUp ? ['--shields-up'] : [];
  const rest = ['--accept-dns=false', `--auth-key=file:${keyFile}`, '--timeout=110s', ...shields];
  try {
    await tailscale('up', `--login-server=${tailnet.url}`, `--hostname=${name}`, ...rest);
  } finally {
    rmSync(keyFile, { force: true });
  }
}

function reachableNode(tailnet: TailnetAddresses, hostname: string): Promise<TailnetNode> {
  return until(`${hostname} to be reachable`, async note => {
    const node = (await listNodes(tailnet.admin)).find(one => one.hostname === hostname);
    note(JSON.stringify(node ?? 'not in the tailnet'));
    return node?.reachable ? node : undefined;
  });
}
