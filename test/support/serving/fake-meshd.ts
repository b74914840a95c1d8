import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** The LocalAPI of a tailscaled, as far as the front and VIP services need it. */
export type FakeMeshd = {
  readonly socket: string;
  /** What is stored. */
  config: unknown;
  advertised: readonly string[];
  /** The addresses of its device, whose name is `mesh-0.example.ts.net`. */
  readonly ownHosts: string[];
  /** The methods and paths of requests, without reads. */
  readonly writes: readonly string[];
  /** Refuses all requests with this status from now on; undefined ends that. */
  refuse(status: number | undefined): void;
  /** How it dials: `ok` connects by the network of this machine. */
  dialling: 'ok' | 'outside' | 'refused' | 'refused once' | 'never';
  /** What was dialled, in order. */
  readonly dialled: string[];
  /** Called before a configuration is compared with the one that was read. */
  beforeWrite: () => void;
  listen(): Promise<void>;
  close(): Promise<void>;
};

/** Starts a LocalAPI without services; it ends with the test. */
export async function startFakeMeshd(): Promise<FakeMeshd> {
  const folder = mkdtempSync(join(tmpdir(), 'meshd-'));
  const writes: string[] = [];
  let server = createServer();
  let refusal: number | undefined;
  const upgraded = new Set<Socket>();
  const meshd: FakeMeshd = {
    socket: join(folder, 'tailscaled.sock'),
    config: {},
    advertised: [],
    ownHosts: ['100.64.0.77', 'fd7a:115c:a1e0::77'],
    writes,
    dialling: 'ok',
    dialled: [],
    refuse: status => {
      refusal = status;
    },
    beforeWrite: () => undefined,
    listen: async () => {
      server = createServer((request, response) => void respond(request, response));
      server.on('upgrade', (request, socket: Socket) => {
        upgraded.add(socket);
        dialFor(meshd, request, socket);
      });
      await once(server.listen(meshd.socket), 'listening');
    },
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await closed;
    },
  };
  const etag = () => JSON.stringify(JSON.stringify(meshd.config));

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const path = `${method} ${url}`;
    let text = '';
    for await (const chunk of request as AsyncIterable<Buffer>) text += chunk.toString();
    if (method !== 'GET') writes.push(path);
    if (headers.host !== 'local-tailscaled.sock') response.writeHead(403).end('invalid host');
    else if (refusal !== undefined) response.writeHead(refusal).end('netMap is nil');
    else if (path === 'GET /localapi/v0/serve-config')
      response.writeHead(200, { etag: etag() }).end(JSON.stringify(meshd.config));
    else if (path === 'POST /localapi/v0/serve-config') {
      meshd.beforeWrite();
      if (headers['if-match'] === etag()) {
        meshd.config = JSON.parse(text);
        response.writeHead(200).end();
      } else response.writeHead(412).end('etag mismatch');
    } else if (path === 'GET /localapi/v0/status?peers=false') {
      const Self = { TailscaleIPs: meshd.ownHosts, DNSName: 'mesh-0.example.ts.net.' };
      response.writeHead(200).end(JSON.stringify({ Self }));
    } else if (path === 'GET /localapi/v0/prefs')
      response.writeHead(200).end(JSON.stringify({ AdvertiseServices: meshd.advertised }));
    else if (path === 'PATCH /localapi/v0/prefs') {
      const { AdvertiseServices } = JSON.parse(text) as { AdvertiseServices: readonly string[] };
      meshd.advertised = AdvertiseServices;
      response.writeHead(200).end('{}');
    } else response.writeHead(404).end();
  }

  await meshd.listen();
  onTestFinished(async () => {
    await meshd.close();
    rmSync(folder, { recursive: true });
  });
  return meshd;
}

/** Dials as the LocalAPI does, by the network of this machine. */
function dialFor(meshd: FakeMeshd, { url, method, headers }: IncomingMessage, socket: Socket): void {
  const { 'dial-host': host = '', 'dial-port': port = '' } = headers;
  const end = (status: string, fields = '', body = '') =>
    socket.end(`HTTP/1.1 ${status}\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`);
  socket.on('error', () => undefined);
  if (`${method} ${url}` !== 'POST /localapi/v0/dial') return void end('404 Not Found');
  meshd.dialled.push(`${String(host)} ${String(port)}`);
  if (meshd.dialling === 'outside') return void end('200 OK', 'Dial-Self: true\r\n');
  if (meshd.dialling === 'never') return;
  if (meshd.dialling !== 'ok') {
    if (meshd.dialling === 'refused once') meshd.dialling = 'ok';
    return void end('502 Bad Gateway', '', 'dial failure: connect tcp: connection was refused');
  }
  const target = connect({ host: String(host), port: Number(port) });
  target.on('error', error => end('502 Bad Gateway', '', `dial failure: ${error.message}`));
  target.once('connect', () => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: ts-dial\r\nConnection: upgrade\r\n\r\n');
    // Like tailscaled, it ends both at the first end of one.
    socket.pipe(target);
    target.pipe(socket);
  });
  socket.once('close', () => target.destroy());
}
