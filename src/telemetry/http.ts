import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { formatAddress } from './address.ts';
import type { Address } from './address.ts';
import type { Log } from './log.ts';
import { SettingError } from './setting-error.ts';

/** A request. */
export type HttpRequest = {
  readonly query: URLSearchParams;
  /** Aborted when the client closes its connection. */
  readonly signal: AbortSignal;
};

/** A response. */
export type HttpResponse = {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A path and its handler. */
export type Route = {
  readonly path: string;
  readonly handle: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>;
};

/** A response of plain text. */
export function plainText(status: number, body: string): HttpResponse {
  return { status, type: 'text/plain; charset=utf-8', body };
}

/** An address, the setting that it comes from, and its routes. */
export type Listener = {
  readonly setting: string;
  readonly address: Address;
  readonly routes: readonly Route[];
};

/** Started servers. */
export interface RunningServers {
  /** The port of each listener, in their order; for listeners with port 0. */
  readonly ports: readonly number[];
  /** Closes all connections: idle ones at once, others after their response or a timeout. */
  close(): Promise<void>;
}

/**
 * Serves routes on their addresses; listeners with equal addresses share a server. Throws SettingError where one cannot
 * listen, and then no server runs.
 */
export async function serve(listeners: readonly Listener[], log: Log): Promise<RunningServers> {
  const servers = new Map<string, RunningServer>();
  const closeAll = async (): Promise<void> => {
    await Promise.all([...servers.values()].map(server => server.close()));
  };
  try {
    for (const { setting, address } of listeners) {
      const place = formatAddress(address);
      const isShared = (other: Listener): boolean => formatAddress(other.address) === place;
      const routes = listeners.filter(isShared).flatMap(other => other.routes);
      if (!servers.has(place)) servers.set(place, await start(setting, address, routes, log));
    }
  } catch (error) {
    await closeAll();
    throw error;
  }
  const ports = listeners.map(({ address }) => servers.get(formatAddress(address))?.port ?? 0);
  return { ports, close: closeAll };
}

type RunningServer = { readonly port: number; readonly close: () => Promise<void> };

/** Limits of requests, beyond which the connection is closed. */
const LIMITS = {
  headersTimeout: 5000,
  requestTimeout: 10_000,
  keepAliveTimeout: 60_000,
  connectionsCheckingInterval: 1000,
  maxHeaderSize: 8192,
};

const MAX_CONNECTIONS = 256;

/** Longer than the slowest response, which is a profile. */
const SILENCE_MS = 120_000;

const GRACE_MS = 1000;

async function start(
  setting: string,
  address: Address,
  routes: readonly Route[],
  log: Log,
): Promise<RunningServer> {
  const byPath = new Map(routes.map(route => [route.path, route]));
  const stopping = new AbortController();
  const server = createServer(LIMITS, (request, response) => {
    void respond(request, response, byPath, stopping.signal, log);
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = SILENCE_MS;
  try {
    await once(server.listen(address), 'listening');
  } catch (cause) {
    const why = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new SettingError(setting, `cannot listen on ${formatAddress(address)}: ${why}`, { cause });
  }
  server.on('error', error => log.error('a telemetry server failed', { setting, error }));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: () => {
      stopping.abort();
      return close(server);
    },
  };
}

function close(server: Server): Promise<void> {
  return new Promise(resolve => {
    const end = setTimeout(() => server.closeAllConnections(), GRACE_MS);
    server.close(() => {
      clearTimeout(end);
      resolve();
    });
  });
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  routes: ReadonlyMap<string, Route>,
  stopping: AbortSignal,
  log: Log,
): Promise<void> {
  const closed = new AbortController();
  const abort = (): void => closed.abort();
  response.once('close', abort);
  stopping.addEventListener('abort', abort);
  try {
    const answer = await answerTo(request, routes, closed.signal);
    send(request, response, answer, stopping.aborted);
  } catch (error) {
    if (response.destroyed) return;
    if (stopping.aborted) {
      send(request, response, plainText(503, 'the process is stopping\n'), true);
      return;
    }
    log.error('a request for telemetry failed', { url: request.url, error });
    send(request, response, plainText(500, 'internal error; see the log of the process\n'), true);
  } finally {
    stopping.removeEventListener('abort', abort);
  }
}

function answerTo(
  request: IncomingMessage,
  routes: ReadonlyMap<string, Route>,
  signal: AbortSignal,
): HttpResponse | Promise<HttpResponse> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return { ...plainText(405, 'only GET and HEAD are answered here\n'), headers: { allow: 'GET, HEAD' } };
  }
  const [path = '', ...query] = (request.url ?? '').split('?');
  const route = routes.get(path);
  if (route) return route.handle({ query: new URLSearchParams(query.join('?')), signal });
  return plainText(404, `unknown path; the paths are ${[...routes.keys()].join(', ')}\n`);
}

/** A request that may have a body closes its connection, since bodies are not read. */
function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, body, headers }: HttpResponse,
  isLast: boolean,
): void {
  if (response.headersSent || response.destroyed) return;
  const hasBody = 'transfer-encoding' in request.headers || 'content-length' in request.headers;
  response.writeHead(status, {
    'content-type': type,
    'content-length': typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
    ...(isLast || hasBody ? { connection: 'close' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}
