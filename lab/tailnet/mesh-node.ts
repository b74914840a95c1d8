import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../process/errors.ts';
import { tailOf } from '../process/process.ts';
import type { ProcessRecord } from '../process/process.ts';
import { runProgram } from '../process/starter.ts';
import type { Starter } from '../process/starter.ts';
import { addJoinKey, listNodes } from './tailnet.ts';
import type { TailnetAddresses, TailnetNode } from './tailnet.ts';
import { waitFor } from '../process/wait.ts';

/** A device to start: its name, its tags, and how others on this machine get into the tailnet through it, if they do. */
export type NodeWish = {
  readonly hostname: string;
  readonly tags: readonly string[];
  readonly proxy?: string;
  /** The network interface through which this machine itself is on the tailnet; to make it takes a privilege. */
  readonly networkInterface?: string;
};

/** Starts a device, without any privilege unless it is to have an interface, lets it join with a key of its own, and waits until others can reach it. */
export async function startMeshNode(
  starter: Starter,
  tailnet: TailnetAddresses,
  wish: NodeWish,
): Promise<TailnetNode> {
  const daemon = startDaemon(starter, wish);
  const { hostname, tags } = wish;
  try {
    const { key } = await addJoinKey(tailnet.admin, { tags });
    await joinTailnet(starter, daemon, tailnet, key);
    return await reachableNode(tailnet, hostname);
  } catch (error) {
    throw new Error(`${hostname} did not join: ${messageOf(error)}\n${tailOf(daemon)}`, { cause: error });
  }
}

/** The daemon of a device, and where it listens to its command line. */
export type Daemon = ProcessRecord & { readonly socket: string };

/** Starts the daemon of a device, which belongs to no tailnet yet. */
export function startDaemon(starter: Starter, wish: Omit<NodeWish, 'tags'>): Daemon {
  const { hostname, proxy, networkInterface = 'userspace-networking' } = wish;
  const folder = join(starter.folder, hostname);
  mkdirSync(folder, { mode: 0o700 });
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
  return { ...record, socket };
}

/**
 * Has a daemon join with a key, and fails with the reason where it is not let in. The key goes through a file that only
 * we can read, not through the list of processes.
 */
export async function joinTailnet(
  starter: Starter,
  { name, socket }: Daemon,
  tailnet: TailnetAddresses,
  key: string,
): Promise<void> {
  const tailscale = (...args: readonly string[]) =>
    runProgram(starter, 'tailscale', [`--socket=${socket}`, ...args]).then(() => true as const);
  const answers = () => tailscale('status', '--json');
  await waitFor('tailscaled to answer', answers);
  const keyFile = `${socket}.key`;
  writeFileSync(keyFile, key, { mode: 0o600 });
  const rest = ['--accept-dns=false', `--auth-key=file:${keyFile}`, '--timeout=110s'];
  try {
    await tailscale('up', `--login-server=${tailnet.url}`, `--hostname=${name}`, ...rest);
  } finally {
    rmSync(keyFile, { force: true });
  }
}

function reachableNode(tailnet: TailnetAddresses, hostname: string): Promise<TailnetNode> {
  return waitFor(`${hostname} to be reachable`, async note => {
    const node = (await listNodes(tailnet.admin)).find(one => one.hostname === hostname);
    note(JSON.stringify(node ?? 'not in the tailnet'));
    return node?.reachable ? node : undefined;
  });
}
