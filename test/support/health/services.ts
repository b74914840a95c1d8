import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A service on 127.0.0.1. */
export type Service = { readonly port: number; readonly connections: () => number };

/** Listens until the test has finished. */
export async function listenForTest(server: Server): Promise<Service> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', socket => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise(resolve => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

/** Starts an HTTP service. */
export function startHttpService(listener: RequestListener): Promise<Service> {
  return listenForTest(createHttpServer(listener));
}

/** Starts a TCP service. */
export function startTcpService(onConnection: (socket: Socket) => void = () => undefined): Promise<Service> {
  return listenForTest(createServer(onConnection));
}

/** A port of 127.0.0.1 on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise(resolve => server.close(resolve));
  return port;
}
