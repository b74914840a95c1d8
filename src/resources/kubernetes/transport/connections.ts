import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsSettings } from '../auth/rest-config.ts';
import { KubeError } from '../kube-error.ts';

/** A request as it is sent. */
type WireRequest = {
  /** What is asked, for errors: list /api/v1/namespaces. */
  readonly what: string;
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly tls: TlsSettings;
  /** A watch has a connection of its own for as long as it lasts. */
  readonly isWatch: boolean;
};

/** The beginning of an answer. */
export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Ends where the answer is whole and throws KubeError before that; leaving it ends the request. */
  readonly body: AsyncIterable<Buffer>;
};

/** How far the connection of a request was: not there yet, made for it, or kept from a request before it. */
export type Phase = 'connecting' | 'connected' | 'kept';

/** A request had no whole answer. */
export class ConnectionError extends KubeError {
  readonly phase: Phase;

  constructor(what: string, error: Error, phase: Phase) {
    super(isNoHttp(error) ? 'Garbled' : 'Unreachable', `${what}: ${wordsOf(error)}`);
    this.phase = phase;
  }
}

/** Connections over which HTTP/1.1 is spoken, and which are kept. */
export interface Connections {
  /** Fails with ConnectionError, or, as the answer does, with the reason of the signal. */
  send(request: WireRequest, signal: AbortSignal): Promise<Answer>;
  /** Closes what no request uses. */
  dropIdle(): void;
  /** Ends everything; fulfilled when no socket is left. */
  close(): Promise<void>;
}

/** Opens at most `maxConnections`, besides one for each watch, which ends with it; a request that finds none free waits. */
export function openConnections(maxConnections: number): Connections {
  const options = { keepAlive: true, maxSockets: maxConnections };
  const short = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) };
  const watches = { 'http:': new HttpAgent(), 'https:': new HttpsAgent() };
  const agents: readonly HttpAgent[] = [...Object.values(short), ...Object.values(watches)];
  const openSockets = () =>
    agents
      .flatMap(({ sockets, freeSockets }) => [...Object.values(sockets), ...Object.values(freeSockets)])
      .flatMap(list => list ?? [])
      .filter(socket => !socket.closed);
  return {
    send: async (request, signal) => {
      signal.throwIfAborted();
      const protocol = request.url.protocol === 'http:' ? 'http:' : 'https:';
      const agent = (request.isWatch ? watches : short)[protocol];
      return await exchange(request, { agent, signal });
    },
    dropIdle: () => {
      const idle = Object.values(short).flatMap(({ freeSockets }) => Object.values(freeSockets));
      for (const socket of idle.flatMap(list => list ?? [])) socket.destroy();
    },
    close: async () => {
      // Where aborted requests still wait for a socket, an agent opens another one for them.
      for (let left = openSockets(); left.length > 0; left = openSockets()) {
        await Promise.all(left.map(destroyed));
      }
    },
  };
}

function destroyed(socket: Socket): Promise<void> {
  return new Promise(resolve => void socket.once('close', () => resolve()).destroy());
}

/** A watch has nothing to send. Node sends ten keepalives, one each second, and fails it when none is acknowledged. */
const KEEPALIVE_MS = 15_000;

type Around = { readonly agent: HttpAgent; readonly signal: AbortSignal };

function exchange(request: WireRequest, around: Around): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = started(request, around);
    const phase = watchPhase(sent);
    if (request.isWatch) sent.once('socket', socket => socket.setKeepAlive(true, KEEPALIVE_MS));
    let failure: Error | undefined;
    sent.on('error', error => {
      failure ??= error;
      reject(
        around.signal.aborted
          ? (around.signal.reason as Error)
          : new ConnectionError(request.what, error, phase()),
      );
    });
    sent.once('response', message => {
      // A response that breaks before it is read fails when it is read.
      message.on('error', () => undefined);
      const failed = (error: Error) =>
        // What is wrong with an answer is reported to its request; the answer itself only ends.
        around.signal.aborted
          ? (around.signal.reason as Error)
          : new ConnectionError(request.what, failure ?? error, phase());
      resolve({ status: message.statusCode ?? 0, headers: message.headers, body: bodyOf(message, failed) });
    });
    sent.end(request.body);
  });
}

/** Certificates and keys that are none make Node throw. */
function started({ what, method, url, headers, body, tls }: WireRequest, around: Around): ClientRequest {
  const length = body ? { 'content-length': String(body.length) } : {};
  const options: RequestOptions = { method, ...around, headers: { ...headers, ...length } };
  try {
    return url.protocol === 'http:' ? httpRequest(url, options) : httpsRequest(url, { ...options, ...tls });
  } catch (error) {
    throw new ConnectionError(what, error as Error, 'connecting');
  }
}

/** Node's own word, reusedSocket, is missing where a socket goes from one request straight to the next. */
function watchPhase(request: ClientRequest): () => Phase {
  let phase: Phase = 'connecting';
  request.once('socket', socket => {
    if (socket.connecting) {
      socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => (phase = 'connected'));
    } else {
      phase = 'kept';
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
  if (!message.complete) throw failed(new Error('the answer has no end'));
}

function isNoHttp(error: Error): boolean {
  return 'code' in error && String(error.code).startsWith('HPE_') && error.code !== 'HPE_INVALID_EOF_STATE';
}

/** What may be shown of an error of Node: its own properties may hold what was received. */
function wordsOf(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const message = error instanceof AggregateError ? '' : error.message.split('\n', 1)[0]?.slice(0, 300);
  return [code, message].filter(word => word !== undefined && word !== '').join(': ');
}
