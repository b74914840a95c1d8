import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tailOf } from './process.ts';
import { runProgram } from './run-program.ts';
import type { Starter } from './starter.ts';
import { addJoinKey, listNodes } from './tailnet.ts';
import type { TailnetAddresses, TailnetNode } from './tailnet.ts';
import { waitFor } from './wait.ts';

/** A device to start: its name, its tags, and where it offers its proxy, if it does. */
export type NodeWish = {
  readonly hostname: string;
  readonly tags: readonly string[];
  readonly proxy?: string;
};

const JOIN_WITHIN_MS = 30_000;

/** Starts a device without any privilege, lets it join with a key of its own, and waits until others can reach it. */
export async function startNode(
  starter: Starter,
  tailnet: TailnetAddresses,
  { hostname, tags, proxy }: NodeWish,
): Promise<TailnetNode> {
  const folder = join(starter.folder, hostname);
  mkdirSync(folder, { mode: 0o700 });
  const socket = join(folder, 'tailscaled.sock');
  const proxies =
    proxy === undefined ? [] : [`--socks5-server=${proxy}`, `--outbound-http-proxy-listen=${proxy}`];
  const record = starter.start(
    hostname,
    'tailscaled',
    ['--tun=userspace-networking', `--statedir=${folder}`, `--socket=${socket}`, '--port=0', ...proxies],
    {
      TS_NO_LOGS_NO_SUPPORT: 'true',
      TS_DISABLE_PORTMAPPER: '1',
      TS_LOGS_DIR: folder,
      TS_ASSUME_NETWORK_UP_FOR_TEST: '1',
    },
  );
  try {
    await joinTailnet(starter, socket, tailnet, { hostname, tags });
    return await reachableNode(tailnet, hostname);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${hostname} did not join: ${why}\n${tailOf(record)}`, { cause: error });
  }
}

/** The key goes through a file that only we can read, not through the list of processes. */
async function joinTailnet(
  starter: Starter,
  socket: string,
  tailnet: TailnetAddresses,
  { hostname, tags }: NodeWish,
): Promise<void> {
  const { key } = await addJoinKey(tailnet.admin, { tags });
  const keyFile = `${socket}.key`;
  writeFileSync(keyFile, key, { mode: 0o600 });
  const args = [`--socket=${socket}`, 'up', `--login-server=${tailnet.url}`, `--hostname=${hostname}`];
  const rest = ['--accept-dns=false', `--auth-key=file:${keyFile}`, '--timeout=20s'];
  const up = () => runProgram(starter, 'tailscale', [...args, ...rest]).then(() => true);
  try {
    await waitFor('tailscaled to answer', up, { timeoutMs: JOIN_WITHIN_MS });
  } finally {
    rmSync(keyFile, { force: true });
  }
}

function reachableNode(tailnet: TailnetAddresses, hostname: string): Promise<TailnetNode> {
  return waitFor(
    `${hostname} to be reachable`,
    async note => {
      const node = (await listNodes(tailnet.admin)).find(one => one.hostname === hostname);
      note(JSON.stringify(node ?? 'not in the tailnet'));
      return node?.reachable ? node : undefined;
    },
    { timeoutMs: JOIN_WITHIN_MS },
  );
}
