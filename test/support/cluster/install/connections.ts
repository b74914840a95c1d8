import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { KubeObject } from '../../../../lab/kube/object.ts';

/** A connection to a listening port: its source and destination addresses. */
export type Connection = { readonly from: string; readonly to: string; readonly port: number };

type Socket = {
  readonly local: string;
  readonly localPort: number;
  readonly remote: string;
  readonly state: string;
};

const LISTENING = '0A';

/** The incoming connections of each network namespace of this machine, pods included, without loopback. */
export function connectionsSeen(): readonly Connection[] {
  return processesOfNetworks().flatMap(pid => {
    const sockets = ['tcp', 'tcp6'].flatMap(table => socketsIn(`/proc/${pid}/net/${table}`));
    const served = new Set(
      sockets.filter(({ state }) => state === LISTENING).map(({ localPort }) => localPort),
    );
    return sockets
      .filter(({ state, localPort }) => state !== LISTENING && served.has(localPort))
      .filter(({ local, remote }) => local !== remote && !local.startsWith('127.'))
      .map(({ local, localPort, remote }) => ({ from: remote, to: local, port: localPort }));
  });
}

/** One process of each network namespace; those that end during the listing are left out. */
function processesOfNetworks(): readonly string[] {
  const found = new Map<string, string>();
  for (const pid of processes()) {
    const network = orUndefined(() => readlinkSync(`/proc/${pid}/ns/net`));
    if (network !== undefined) found.set(network, pid);
  }
  return [...found.values()];
}

/** Kills the processes of a pod, as on a machine that fails; its sandbox container stays. */
export function killPod({ metadata: { uid = '', name = '' } }: KubeObject): void {
  const isOurs = (pid: string) =>
    orUndefined(
      () =>
        readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(uid) &&
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('cli.js'),
    );
  const found = processes().filter(isOurs);
  if (uid === '' || found.length === 0) throw new Error(`no process of ${name} runs`);
  for (const pid of found) process.kill(Number(pid), 'SIGKILL');
}

function processes(): readonly string[] {
  return readdirSync('/proc').filter(name => /^\d+$/.test(name));
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function socketsIn(table: string): readonly Socket[] {
  const lines = (orUndefined(() => readFileSync(table, 'utf8')) ?? '').trim().split('\n').slice(1);
  return lines.map(line => {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/);
    const [address = '', port = ''] = local.split(':');
    return {
      local: addressOf(address),
      localPort: Number.parseInt(port, 16),
      remote: addressOf(remote.split(':')[0] ?? ''),
      state,
    };
  });
}

/** The kernel writes each word in little-endian order; an IPv4-mapped address ends with the IPv4 address. */
function addressOf(hex: string): string {
  const bytes = hex.slice(-8).match(/../g) ?? [];
  return bytes
    .reverse()
    .map(byte => Number.parseInt(byte, 16))
    .join('.');
}
