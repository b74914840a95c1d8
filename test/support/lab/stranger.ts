import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { locateBinaries } from '../../../lab/parts/locate.ts';
import { freePorts } from '../../../lab/process/ports.ts';
import { runProgram, starterIn } from '../../../lab/process/starter.ts';
import { until } from '../../../lab/process/wait.ts';
import { startMeshNode } from '../../../lab/tailnet/mesh-node.ts';
import { removeNode } from '../../../lab/tailnet/tailnet.ts';
import type { TailnetAddresses } from '../../../lab/tailnet/tailnet.ts';
import { MESH_POD, RELAY } from '../../../src/api/names.ts';
import { IS_LONG } from '../eventually.ts';
import { ownFolder } from './lab.ts';
import { exchange, openAssociation, socksTunnel } from './tunnel.ts';

/** A device of a tailnet that has no part in traffic. */
export type Stranger = {
  /** Its SOCKS5 proxy, which leads into the tailnet. */
  readonly proxy: string;
  /**
   * What answers it at ports of another device: `tcp 80` for one that opens, and a line for each request there that was
   * answered. The peer API, which tailscaled itself serves, is left out where it refuses.
   */
  readonly answersAt: (ports: DevicePorts) => Promise<readonly string[]>;
  /** What answers it once these answers are among them: on a slow machine a port that is open may be late. */
  readonly answersWith: (wanted: readonly string[], ports: DevicePorts) => Promise<readonly string[]>;
  readonly end: () => Promise<void>;
};

/** Ports of a device of the tailnet to try. */
export type DevicePorts = {
  readonly address: string;
  readonly tcp: readonly number[];
  readonly udp: readonly number[];
  /** Where a proxy at one of these ports is asked to connect to, as host:port. */
  readonly targets: readonly string[];
  /** An UDP service of the tailnet that echoes: datagrams before its answer have arrived. */
  readonly echo: string;
};

/** A device that drops packets answers nothing. */
const TIMEOUT_MS = 3_000;
const CONCURRENT = 500;

/**
 * The ports to try where a process runs: of all sockets in its network, ours, and others; in the long form also all of TCP, and
 * one in 16 of UDP, because meshd has a socket for each for two minutes.
 */
export function portsToTry(pid: number, others: readonly number[] = []): Pick<DevicePorts, 'tcp' | 'udp'> {
  const all = IS_LONG ? Array.from({ length: 65_535 }, (_, index) => index + 1) : [];
  const portsOf = (more: readonly number[], ...tables: readonly string[]) => {
    const lines = tables.flatMap(table =>
      readFileSync(`/proc/${pid}/net/${table}`, 'latin1').trim().split('\n').slice(1),
    );
    const open = lines.map(line => line.trim().split(/\s+/)).filter(([, , , state]) => state !== TIME_WAIT);
    const found = open.map(([, local = '']) => Number(`0x${local.split(':').at(-1)}`));
    return [...new Set([...found, ...OUR_PORTS, ...others, ...more])];
  };
  return {
    tcp: portsOf(all, 'tcp', 'tcp6'),
    udp: portsOf(
      all.filter(port => port % 16 === 0),
      'udp',
      'udp6',
    ),
  };
}

/** Those of mesh pods, with the first and the last of the relays. */
const OUR_PORTS = [MESH_POD.ports.proxy, MESH_POD.ports.metrics, RELAY.ports.http, 20_000, 20_001, 29_999];

const TIME_WAIT = '06';

/** Joins a tailnet with a device of its own, which is removed from the tailnet at its end. */
export async function startStranger(tailnet: TailnetAddresses): Promise<Stranger> {
  const own = ownFolder();
  own.folder.create();
  try {
    const starter = starterIn(own.folder, locateBinaries(process.env), process.env['PATH'] ?? '');
    const [port] = await freePorts(1);
    const proxy = `127.0.0.1:${port}`;
    const hostname = `stranger-${crypto.randomUUID().slice(0, 8)}`;
    const node = await startMeshNode(starter, tailnet, { hostname, tags: ['tag:stranger'], proxy });
    const socket = join(own.folder.path, hostname, 'tailscaled.sock');
    const answersAt: Stranger['answersAt'] = async ports => {
      const [tcp, udp] = await Promise.all([tcpAnswers(proxy, ports), udpAnswers(proxy, ports)]);
      const status = await runProgram(starter, 'tailscale', [`--socket=${socket}`, 'status', '--json']);
      return [...withoutPeerApi(tcp, peerApiPortsIn(status, ports.address)), ...udp];
    };
    return {
      proxy,
      answersAt,
      answersWith: (wanted, ports) =>
        until(`answers: ${wanted.join(', ')}`, async note => {
          const answers = await answersAt(ports);
          note(answers.join(', '));
          return wanted.every(answer => answers.includes(answer)) ? answers : undefined;
        }),
      end: async () => {
        await own.end();
        await removeNode(tailnet.admin, node.id);
      },
    };
  } catch (error) {
    await own.end();
    throw error;
  }
}

function peerApiPortsIn(status: string, address: string): readonly number[] {
  type Peer = { readonly TailscaleIPs?: readonly string[]; readonly PeerAPIURL?: readonly string[] };
  const { Peer: peers = {} } = JSON.parse(status) as { Peer?: Readonly<Record<string, Peer>> };
  const urls = Object.values(peers)
    .filter(({ TailscaleIPs = [] }) => TailscaleIPs.includes(address))
    .flatMap(({ PeerAPIURL = [] }) => PeerAPIURL);
  return [...new Set(urls.map(url => Number(new URL(url).port)))];
}

function withoutPeerApi(answers: readonly string[], ports: readonly number[]): readonly string[] {
  const refused = new RegExp(`^tcp (${ports.join('|')})($|, .*: "HTTP/1.1 403 Forbidden"$)`);
  return answers.filter(answer => ports.length === 0 || !refused.test(answer));
}

async function tcpAnswers(proxy: string, { address, tcp, targets }: DevicePorts): Promise<readonly string[]> {
  const open: number[] = [];
  const untried = [...tcp];
  const tryPorts = async () => {
    for (let port = untried.pop(); port !== undefined; port = untried.pop()) {
      if (await opens(proxy, `${address}:${port}`)) open.push(port);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, tryPorts));
  const answers = open
    .sort((one, other) => one - other)
    .map(async port => {
      const requests = [...targets.flatMap(requestsTo), SOCKS5].map(async ([request, text]) => {
        const answer = await answerTo(proxy, `${address}:${port}`, text);
        return answer === undefined ? [] : [`tcp ${port}, ${request}: ${answer}`];
      });
      return [`tcp ${port}`, ...(await Promise.all(requests)).flat()];
    });
  return (await Promise.all(answers)).flat();
}

async function opens(proxy: string, to: string): Promise<boolean> {
  try {
    (await socksTunnel(proxy, to, TIMEOUT_MS)).destroy();
    return true;
  } catch {
    return false;
  }
}

/** What one sends to a proxy that is to connect to a target. */
function requestsTo(target: string): readonly (readonly [request: string, text: string])[] {
  const end = ` HTTP/1.1\r\nhost: ${target}\r\nconnection: close\r\n\r\n`;
  return [
    [`GET http://${target}/`, `GET http://${target}/${end}`],
    [`CONNECT ${target}`, `CONNECT ${target}${end}`],
  ];
}

/** A proxy accepts this before it knows the target. */
const SOCKS5 = ['SOCKS5', '\x05\x01\x00'] as const;

/** The first line of an answer. */
async function answerTo(proxy: string, to: string, text: string): Promise<string | undefined> {
  try {
    const answer = await exchange(await socksTunnel(proxy, to, TIMEOUT_MS), text, TIMEOUT_MS);
    return JSON.stringify(answer.split('\r\n')[0]);
  } catch {
    return undefined;
  }
}

/** Datagrams that services answer: any, a request of DNS, and one of STUN. */
const DATAGRAMS = [
  Buffer.from('anyone there?'),
  Buffer.from('abcd01000001000000000000076578616d706c6503636f6d0000010001', 'hex'),
  Buffer.from('000100002112a442000102030405060708090a0b', 'hex'),
];

const AT_ONCE = 200;

/**
 * What answers twice, the second time to another client. meshd has a socket on loopback for each client and port: a datagram
 * to a port that is by chance that of such a socket comes back to the client of the socket.
 */
async function udpAnswers(proxy: string, ports: DevicePorts): Promise<readonly string[]> {
  const first = await udpPorts(proxy, ports, ports.udp);
  const again = first.length === 0 ? [] : await udpPorts(proxy, ports, first);
  return again.map(port => `udp ${port}`).sort();
}

/** The ports that sent a datagram back. */
async function udpPorts(
  proxy: string,
  { address, echo }: DevicePorts,
  ports: readonly number[],
): Promise<readonly number[]> {
  const sources = new Map<string, number>();
  const association = await openAssociation(proxy, from => sources.set(from, (sources.get(from) ?? 0) + 1));
  try {
    for (let at = 0; at < ports.length; at += AT_ONCE) {
      for (const port of ports.slice(at, at + AT_ONCE))
        for (const datagram of DATAGRAMS) association.send(`${address}:${port}`, datagram);
      await echoes();
    }
    await echoes();
  } finally {
    association.close();
  }
  return [...sources.keys()].filter(from => from !== echo).map(from => Number(from.split(':').at(-1)));

  /** Waits for three answers in a row of the service that echoes, which come after those to datagrams before. */
  async function echoes(): Promise<void> {
    for (let count = 0; count < 3; count++) {
      const before = sources.get(echo) ?? 0;
      await until(`${echo} to answer`, () => {
        association.send(echo, Buffer.from('echo'));
        return Promise.resolve((sources.get(echo) ?? 0) > before);
      });
    }
  }
}
