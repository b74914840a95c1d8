import { once } from 'node:events';
import { createServer, request as sendRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ServerCertificate } from './server.ts';

/** An HTTP proxy that listens on loopback, for tests of clients behind one. */
export type HttpProxy = {
  readonly url: string;
  /** What went through it: `CONNECT host:port`, or the method and address of a plain request. */
  readonly requests: () => readonly string[];
  readonly close: () => Promise<void>;
};

/** What a proxy demands of its clients. */
export type HttpProxyOptions = {
  /** Makes it a proxy that itself is reached by TLS. */
  readonly certificate?: ServerCertificate;
  /** Refuses clients without these credentials with 407. */
  readonly credentials?: { readonly user: string; readonly password: string };
};

/** Starts a proxy for CONNECT and for plain requests. */
export async function startHttpProxy({
  certificate,
  credentials,
}: HttpProxyOptions = {}): Promise<HttpProxy> {
  const requests: string[] = [];
  const tunnels = new Set<Duplex>();
  const isAllowed = ({ headers }: IncomingMessage) => {
    if (!credentials) return true;
    const expected = Buffer.from(`${credentials.user}:${credentials.password}`).toString('base64');
    return headers['proxy-authorization'] === `Basic ${expected}`;
  };
  const forward = (incoming: IncomingMessage, response: ServerResponse) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    if (isAllowed(incoming)) forwardRequest(incoming, response);
    else response.writeHead(407, { 'proxy-authenticate': 'Basic' }).end();
  };
  const server = certificate ? createTlsServer({ ...certificate }, forward) : createServer(forward);
  server.on('connect', (incoming: IncomingMessage, socket: Duplex) => {
    requests.push(`CONNECT ${incoming.url}`);
    if (isAllowed(incoming)) openTunnel(incoming.url ?? '', socket, tunnels);
    else socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `${certificate ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: () => [...requests],
    close: async () => {
      server.close();
      server.closeAllConnections();
      for (const socket of tunnels) socket.destroy();
      await once(server, 'close');
    },
  };
}

function forwardRequest(incoming: IncomingMessage, response: ServerResponse): void {
  const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = incoming.headers;
  const upstream = sendRequest(incoming.url ?? '', { method: incoming.method, headers }, answer => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  upstream.on('error', () => response.destroy());
  incoming.pipe(upstream);
}

function openTunnel(target: string, socket: Duplex, tunnels: Set<Duplex>): void {
  const colon = target.lastIndexOf(':');
  const upstream = connect(Number(target.slice(colon + 1)), target.slice(0, colon));
  for (const end of [socket, upstream]) {
    tunnels.add(end);
    end.on('close', () => tunnels.delete(end));
  }
  upstream.on('connect', () => {
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    socket.pipe(upstream).pipe(socket);
  });
  upstream.on('error', () => socket.destroy());
  socket.on('error', () => upstream.destroy());
}
