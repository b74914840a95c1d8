import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect, Socket } from 'node:net';
import { MESH_POD, RELAY } from '../../../src/api/names.ts';
import type { ProbeProxy } from '../../../src/health/check.ts';
import { nextAddress } from '../relay/running-relay.ts';

/** What the proxy does with a CONNECT to an authority. */
export type OnConnect = (authority: string, socket: Socket, early: Buffer) => void;

/** The health endpoints of meshd and relay in a pod. */
export type PodHealth = {
  /** The paths of the requests that they received. */
  readonly requests: readonly string[];
  /** The status of /healthz of meshd, and of /readyz of the relay; undefined for no response. */
  meshd: number | undefined;
  relay: number | undefined;
  close(): Promise<void>;
};

/** A mesh pod on an address of its own; a test can let its proxy and its health fail. */
export type TestMember = ProbeProxy & {
  /** The authorities of the CONNECT requests that it received. */
  readonly connects: readonly string[];
  readonly health: PodHealth;
  onConnect: OnConnect;
  /** Closes all connections and listeners. */
  close(): Promise<void>;
};

/** Connects to the authority, as meshd does. */
export const forward: OnConnect = (authority, socket, early) => {
  const colon = authority.lastIndexOf(':');
  const host = authority.slice(0, colon).replaceAll(/[[\]]/g, '');
  const upstream = connect({ host, port: Number(authority.slice(colon + 1)) });
  const refuse = () =>
    socket.end(
      `HTTP/1.1 500 Internal Server Error\r\nTailscale-Connect-Error: dial tcp ${authority}: connect: connection refused\r\n\r\n`,
    );
  upstream.once('error', refuse);
  upstream.once('connect', () => {
    upstream.removeAllListeners('error').on('error', () => socket.resetAndDestroy());
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    upstream.write(early);
    socket.pipe(upstream).pipe(socket);
  });
  socket.once('close', () => upstream.destroy());
};

/** Sends bytes, and leaves the connection open. */
export function send(bytes: string): OnConnect {
  return (_authority, socket) => void socket.resume().write(bytes);
}

/** Sends bytes, and closes the connection. */
export function respond(bytes: string): OnConnect {
  return (_authority, socket) => void socket.resume().end(bytes);
}

/** Resets the connection. */
export const reset: OnConnect = (_authority, socket) => void socket.resetAndDestroy();

/** Sends nothing. */
export const hang: OnConnect = (_authority, socket) => void socket.resume();

type OpenServer = { readonly close: () => Promise<void> };

async function listen(server: Server, address: string, port: number): Promise<OpenServer> {
  const sockets = new Set<Socket>();
  server.on('connection', socket => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(server.listen(port, address), 'listening');
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise(resolve => server.close(resolve));
  };
  return { close };
}

/** Starts the health endpoints of a pod, which is well. */
export async function startPodHealth(address: string): Promise<PodHealth> {
  const requests: string[] = [];
  const serve = (path: string, status: () => number | undefined) =>
    createServer(({ url = '' }, response) => {
      requests.push(url);
      const code = url === path ? status() : 404;
      if (code !== undefined) response.writeHead(code).end();
    });
  const health: PodHealth = {
    requests,
    meshd: 200,
    relay: 200,
    close: async () => {
      await Promise.all(servers.map(({ close }) => close()));
    },
  };
  const servers = await Promise.all([
    listen(
      serve('/healthz', () => health.meshd),
      address,
      MESH_POD.ports.metrics,
    ),
    listen(
      serve('/readyz', () => health.relay),
      address,
      RELAY.ports.http,
    ),
  ]);
  return health;
}

/** Starts a member that is running. */
export async function startMember(): Promise<TestMember> {
  const address = nextAddress();
  const connects: string[] = [];
  const health = await startPodHealth(address);
  const server = createServer((_request, response) => void response.writeHead(400).end());
  server.on('connect', ({ url = '' }, socket, early) => {
    connects.push(url);
    // Sockets of HTTP servers stay half open.
    socket.once('end', () => socket.end());
    if (socket instanceof Socket) member.onConnect(url, socket, early);
  });
  const proxy = await listen(server, address, MESH_POD.ports.proxy);
  const member: TestMember = {
    name: 'meshd-0',
    proxy: { address, port: MESH_POD.ports.proxy },
    pod: address,
    connects,
    health,
    onConnect: forward,
    close: async () => {
      await Promise.all([proxy.close(), health.close()]);
    },
  };
  return member;
}
