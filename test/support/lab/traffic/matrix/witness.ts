import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** The bytes through tunnels to a target, both ways. */
export type Carried = { readonly tunnels: number; readonly up: number; readonly down: number };

/** A relay before a proxy, which counts the bytes of each target. */
export interface Witness {
  /** Its address, which replaces that of the proxy. */
  readonly address: string;
  /** The counts of a target, as CONNECT requests name it. */
  carried(target: string): Carried;
  /** All targets of CONNECT requests. */
  targets(): readonly string[];
  end(): Promise<void>;
}

/** Counts one tunnel; its target is known from its first line. */
type Tunnel = { head: string; up: number; down: number };

const MAX_LINE_LENGTH = 1_000;

/** Starts a witness before a proxy at host:port. */
export async function startWitness(proxy: string): Promise<Witness> {
  const tunnels: Tunnel[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, near => {
    const far = connectTo(proxy);
    const tunnel = { head: '', up: 0, down: 0 };
    tunnels.push(tunnel);
    near.on('data', (bytes: Buffer) => {
      tunnel.up += bytes.length;
      if (!tunnel.head.includes('\r\n'))
        tunnel.head = (tunnel.head + bytes.toString('latin1')).slice(0, MAX_LINE_LENGTH);
    });
    far.on('data', (bytes: Buffer) => (tunnel.down += bytes.length));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.setNoDelay().pipe(other);
      one.once('error', () => other.resetAndDestroy()).once('close', () => sockets.delete(one));
    }
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    carried: target => sumOf(tunnels.filter(({ head }) => targetIn(head) === target)),
    targets: () => [...new Set(tunnels.map(({ head }) => targetIn(head)))],
    end: async () => {
      const closed = new Promise(resolve => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function connectTo(address: string): Socket {
  const [host, port] = address.split(':');
  return connect({ host, port: Number(port), allowHalfOpen: true });
}

function sumOf(tunnels: readonly Tunnel[]): Carried {
  const sum = (of: (tunnel: Tunnel) => number) => tunnels.reduce((all, tunnel) => all + of(tunnel), 0);
  return { tunnels: tunnels.length, up: sum(({ up }) => up), down: sum(({ down }) => down) };
}

function targetIn(head: string): string {
  return /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1] ?? head;
}
