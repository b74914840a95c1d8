import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** The LocalAPI of a tailscaled, as far as VIP services need it. */
export type FakeMeshd = {
  readonly socket: string;
  /** What is stored. */
  config: unknown;
  advertised: readonly string[];
  /** The methods and paths of requests, without reads. */
  readonly writes: readonly string[];
  /** Refuses all requests with this status from now on; undefined ends that. */
  refuse(status: number | undefined): void;
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
  const meshd: FakeMeshd = {
    socket: join(folder, 'tailscaled.sock'),
    config: {},
    advertised: [],
    writes,
    refuse: status => {
      refusal = status;
    },
    beforeWrite: () => undefined,
    listen: async () => {
      server = createServer((request, response) => void respond(request, response));
      await once(server.listen(meshd.socket), 'listening');
    },
    close: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
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
