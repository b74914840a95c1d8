import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import { AUTHORITY } from './wire-certificates.ts';
import type { Wire } from './wire-server.ts';

/** Starts a server on loopback that sends bytes as they are; returns its address. It ends with the test. */
export async function serveRaw(wire: Wire, respond: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const accept = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    respond(socket);
  };
  const server: Server = serverFor(wire, accept);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  return `${wire === 'HTTP' ? 'http' : 'https'}://127.0.0.1:${port}`;
}

function serverFor(wire: Wire, accept: (socket: Socket) => void): Server {
  return wire === 'HTTP' ? createServer(accept) : createTlsServer({ ...AUTHORITY.server }, accept);
}
