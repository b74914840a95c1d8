import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import { AUTHORITY } from './wire-certificates.ts';
import type { Wire } from './wire-server.ts';

/** The frame by which both sides of HTTP/2 begin, without any settings. */
export const SETTINGS = Buffer.from('000000040000000000', 'hex');

/** The beginning of a frame with headers of which only a part follows. */
export const HALF_HEADERS = Buffer.from('000040010400000001880f0d', 'hex');

/** What is in the hexadecimal form of frames when the first request is among them. */
export const FIRST_REQUEST = /01(05|25)00000001/;

/** Headers that begin an answer to the first request, with 200 and a content type of JSON. */
export const ANSWER = Buffer.from('000014010400000001880f10106170706c69636174696f6e2f6a736f6e', 'hex');

/** Starts a server on loopback that says bytes as they are; gives its address. It ends with the test. */
export async function serveRaw(wire: Wire, speak: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const meet = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    speak(socket);
  };
  const server: Server = serverFor(wire, meet);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  return `${wire === 'plain HTTP' ? 'http' : 'https'}://127.0.0.1:${port}`;
}

function serverFor(wire: Wire, meet: (socket: Socket) => void): Server {
  if (wire === 'plain HTTP') return createServer(meet);
  const ALPNProtocols = [wire === 'HTTP/2' ? 'h2' : 'http/1.1'];
  return createTlsServer({ ...AUTHORITY.server, ALPNProtocols }, meet);
}
