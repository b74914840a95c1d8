import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { AUTHORITY } from './wire-certificates.ts';
import type { Authority } from './wire-certificates.ts';

/** The protocols of a loopback server. */
export const WIRES = ['HTTPS', 'HTTP'] as const;

/** One of them. */
export type Wire = (typeof WIRES)[number];

/** A request as the server got it, and functions that answer it. */
export type Exchange = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The number of earlier requests. */
  readonly number: number;
  /** The name in the certificate of the client. */
  readonly client: string | undefined;
  respond(status: number, body: string, headers?: Readonly<Record<string, string>>): void;
  begin(status: number, headers?: Readonly<Record<string, string>>): void;
  /** Whether more can be written. */
  write(text: string | Buffer): boolean;
  end(): void;
  /** Resets the connection. */
  reset(): void;
  /** Closes the connection as if the answer were complete. */
  hangUp(): void;
  /** Fulfilled when the client has disconnected. */
  readonly over: Promise<void>;
};

/** A loopback server. */
export type WireServer = {
  readonly url: string;
  readonly port: number;
  readonly seen: readonly Exchange[];
  /** The open connections, and the number of all so far. */
  readonly sockets: ReadonlySet<Socket>;
  readonly opened: () => number;
  /** Resets all connections. */
  killAll(): void;
  close(): Promise<void>;
};

type ServerOptions = {
  readonly authority?: Authority;
  readonly port?: number;
  readonly respond: (exchange: Exchange) => unknown;
};

/** Starts a server on loopback, which ends with the test. */
export async function serveWire(wire: Wire, options: ServerOptions): Promise<WireServer> {
  const { authority = AUTHORITY, port = 0, respond } = options;
  const [seen, sockets] = [[] as Exchange[], new Set<Socket>()];
  let opened = 0;
  const server = serverFor(wire, authority);
  server.on('connection', (socket: Socket) => {
    opened++;
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  // eslint-disable-next-line @typescript-eslint/no-misused-promises
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    const exchange = await exchangeOf(request, response, seen.length, sockets);
    seen.push(exchange);
    respond(exchange);
  });
  await listening(server, port);
  const killAll = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const close = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    killAll();
    await closed;
  };
  onTestFinished(close);
  const { port: bound } = server.address() as AddressInfo;
  const url = `${wire === 'HTTP' ? 'http' : 'https'}://127.0.0.1:${bound}`;
  return { url, port: bound, seen, sockets, opened: () => opened, killAll, close };
}

/** The port may belong to another test for a while. */
async function listening(server: Server, port: number): Promise<void> {
  await eventually(async () => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  });
}

function serverFor(wire: Wire, { ca, server }: Authority): Server {
  const tls = { ...server, ca, requestCert: true, rejectUnauthorized: false };
  return wire === 'HTTP' ? createHttpServer() : createHttpsServer(tls);
}

async function exchangeOf(
  request: IncomingMessage,
  response: ServerResponse,
  number: number,
  sockets: ReadonlySet<Socket>,
): Promise<Exchange> {
  request.on('error', () => undefined);
  response.on('error', () => undefined);
  const over = once(response, 'close').then(() => undefined);
  const port = request.socket.remotePort;
  const raw = [...sockets].find(socket => socket.remotePort === port);
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers as Readonly<Record<string, string>>,
    number,
    client: clientOf(request),
    body: await bodyOf(request),
    over,
    respond: (status, text, headers = { 'content-type': 'application/json' }) => {
      response.writeHead(status, headers);
      response.end(text);
    },
    begin: (status, headers = { 'content-type': 'application/json' }) => {
      response.writeHead(status, headers);
      response.flushHeaders();
    },
    write: text => response.write(text),
    end: () => void response.end(),
    reset: () => void raw?.resetAndDestroy(),
    hangUp: () => void raw?.end(),
  };
}

function clientOf({ socket }: IncomingMessage): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const { subject } = socket.getPeerCertificate();
  // Without a client certificate this is an object without fields.
  return (subject as { readonly CN?: string } | undefined)?.CN;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    // The client has disconnected.
  }
  return Buffer.concat(chunks).toString();
}
