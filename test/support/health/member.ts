import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect, Socket } from 'node:net';
import { MESH_POD, RELAY } from '../../../src/api/names.ts';
import type { Member } from '../../../src/health/target.ts';
import { nextAddress } from '../relay/running-relay.ts';

/** What the proxy does with a CONNECT to an authority. */
export type OnConnect = (authority: string, socket: Socket, early: Buffer) => void;

/** A mesh pod on an address of its own: a proxy, and the health of meshd and relay; a test can let each fail. */
export type TestMember = Member & {
  /** The authorities of the CONNECT requests that it received. */
  readonly connects: readonly string[];
  /** The paths of the health requests that it received. */
  readonly healthRequests: readonly string[];
  onConnect: OnConnect;
  /** The status of /healthz of meshd, and of /readyz of the relay; undefined for no response. */
  meshd: number | undefined;
  relay: number | undefined;
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
  return (_authority, socket) => void socket.write(bytes);
}

/** Sends bytes, and closes the connection. */
export function respond(bytes: string): OnConnect {
  return (_authority, socket) => void socket.end(bytes);
}

/** Resets the connection. */
export const reset: OnConnect = (_authority, socket) => void socket.resetAndDestroy();

/** Sends nothing. */
export const hang: OnConnect = () => undefined;

/** Starts a member that is running. */
export async function startMember(name = 'meshd-0'): Promise<TestMember> {
  const address = nextAddress();
  const sockets = new Set<Socket>();
  const connects: string[] = [];
  const healthRequests: string[] = [];
  const listen = async (server: Server, port: number): Promise<Server> => {
    server.on('connection', socket => {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => sockets.delete(socket));
    });
    await once(server.listen(port, address), 'listening');
    return server;
  };
  const health = (port: number, path: string, status: () => number | undefined) =>
    listen(
      createServer(({ url = '' }, response) => {
        healthRequests.push(url);
        const code = url === path ? status() : 404;
        if (code !== undefined) response.writeHead(code).end();
      }),
      port,
    );
  const member: TestMember = {
    name,
    proxy: { address, port: MESH_POD.ports.proxy },
    pod: address,
    connects,
    healthRequests,
    onConnect: forward,
    meshd: 200,
    relay: 200,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))));
    },
  };
  const proxy = createServer((_request, response) => void response.writeHead(400).end());
  proxy.on('connect', ({ url = '' }, socket, early) => {
    connects.push(url);
    if (socket instanceof Socket) member.onConnect(url, socket, early);
  });
  const servers = await Promise.all([
    listen(proxy, MESH_POD.ports.proxy),
    health(MESH_POD.ports.metrics, '/healthz', () => member.meshd),
    health(RELAY.ports.http, '/readyz', () => member.relay),
  ]);
  return member;
}
