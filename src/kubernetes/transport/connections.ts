import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsSettings } from '../auth/rest-config.ts';
import { KubeError } from './transport.ts';

/** A request as it is sent. */
type WireRequest = {
  /** For errors: list /api/v1/namespaces. */
  readonly what: string;
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly tls: TlsSettings;
  /** A watch has a connection of its own. */
  readonly isWatch: boolean;
};

/** A response whose body is still to be read. */
export type HttpResponse = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Throws KubeError where the response is incomplete; returning early aborts the request. */
  readonly body: AsyncIterable<Buffer>;
};

/** The connection of a request when it failed: not yet open, opened for it, or reused from an earlier request. */
export type Phase = 'connecting' | 'connected' | 'reused';

/** A request had no complete response. */
export class ConnectionError extends KubeError {
  readonly phase: Phase;

  constructor(what: string, error: Error, phase: Phase) {
    super(isNotHttp(error) ? 'Malformed' : 'Unreachable', `${what}: ${safeMessage(error)}`);
    this.phase = phase;
  }
}

/** HTTP/1.1 connections to an API server, which are reused. */
export interface Connections {
  /** Fails with ConnectionError or the reason of the signal, as reading the body does. */
  send(request: WireRequest, signal: AbortSignal): Promise<HttpResponse>;
  closeIdle(): void;
  /** Closes all connections; resolves when every socket is closed. */
  close(): Promise<void>;
}

/** Opens up to `maxConnections`, and one more for each watch, closed with it. Requests beyond that wait. */
export function openConnections(maxConnections: number): Connections {
  const options = { keepAlive: true, maxSockets: maxConnections };
  const pooled = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };
  const watches = { 'http:': new HttpAgent(), 'https:': new HttpsAgent() };
  const agents: readonly HttpAgent[] = [...Object.values(pooled), ...Object.values(watches)];
  const openSockets = () =>
    agents
      .flatMap(({ sockets, freeSockets }) => [...Object.values(sockets), ...Object.values(freeSockets)])
      .flatMap(list => list ?? [])
      .filter(socket => !socket.closed);
  return {
    send: async (request, signal) => {
      signal.throwIfAborted();
      const protocol = request.url.protocol === 'http:' ? 'http:' : 'https:';
      const agent = (request.isWatch ? watches : pooled)[protocol];
      return await sendOn(request, { agent, signal });
    },
    closeIdle: () => {
      const idle = Object.values(pooled).flatMap(({ freeSockets }) => Object.values(freeSockets));
      for (const socket of idle.flatMap(list => list ?? [])) socket.destroy();
    },
    close: async () => {
      // For aborted requests that were waiting for a socket, an agent opens another one.
      for (let left = openSockets(); left.length > 0; left = openSockets()) {
        await Promise.all(left.map(destroyed));
      }
    },
  };
}

function destroyed(socket: Socket): Promise<void> {
  return new Promise(resolve => void socket.once('close', () => resolve()).destroy());
}

/** TCP keepalives start after this time without traffic on a watch; ten without acknowledgement, 1 s apart, fail it. */
const KEEPALIVE_MS = 15_000;

type SocketOptions = { readonly agent: HttpAgent; readonly signal: AbortSignal };

function sendOn(request: WireRequest, socketOptions: SocketOptions): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const sent = started(request, socketOptions);
    const phase = watchPhase(sent);
    if (request.isWatch) sent.once('socket', socket => socket.setKeepAlive(true, KEEPALIVE_MS));
    let failure: Error | undefined;
    sent.on('error', error => {
      failure ??= error;
      reject(
        socketOptions.signal.aborted
          ? (socketOptions.signal.reason as Error)
          : new ConnectionError(request.what, error, phase()),
      );
    });
    sent.once('response', message => {
      // A response that fails before its body is read fails when the body is read.
      message.on('error', () => undefined);
      const failed = (error: Error) =>
        // Node reports why a response failed on its request.
        socketOptions.signal.aborted
          ? (socketOptions.signal.reason as Error)
          : new ConnectionError(request.what, failure ?? error, phase());
      resolve({ status: message.statusCode ?? 0, headers: message.headers, body: bodyOf(message, failed) });
    });
    sent.end(request.body);
  });
}

/** Node throws where a certificate or key is invalid. */
function started(
  { what, method, url, headers, body, tls }: WireRequest,
  socketOptions: SocketOptions,
): ClientRequest {
  const length = body ? { 'content-length': String(body.length) } : {};
  const options: RequestOptions = { method, ...socketOptions, headers: { ...headers, ...length } };
  try {
    return url.protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, { ...options, ...tls });
  } catch (error) {
    throw new ConnectionError(what, error as Error, 'connecting');
  }
}

/** Node's own `reusedSocket` is false where a socket goes straight from one request to the next. */
function watchPhase(request: ClientRequest): () => Phase {
  let phase: Phase = 'connecting';
  request.once('socket', socket => {
    if (socket.connecting) {
      socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => (phase = 'connected'));
    } else {
      phase = 'reused';
    }
  });
  return () => phase;
}

async function* bodyOf(
  message: IncomingMessage,
  failed: (error: Error) => Error,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of message) yield chunk as Buffer;
  } catch (error) {
    throw failed(error as Error);
  }
  if (!message.complete) throw failed(new Error('the response is incomplete'));
}

function isNotHttp(error: Error): boolean {
  return 'code' in error && String(error.code).startsWith('HPE_') && error.code !== 'HPE_INVALID_EOF_STATE';
}

/** Code and message alone: other properties of Node's errors may hold received bytes. */
function safeMessage(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const message = error instanceof AggregateError ? '' : error.message.split('\n', 1)[0]?.slice(0, 300);
  return [code, message].filter(word => word !== undefined && word !== '').join(': ');
}
