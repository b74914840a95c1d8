import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsSettings } from './access.ts';
import { ConnectionError, wordsOf } from './connection.ts';
import type { Answer, Connection, WireRequest } from './connection.ts';
import { closeAll } from './connection-dial.ts';
import { Underway } from './underway.ts';

/** A request each takes a socket: so many may be used for short ones, and for those that go on. */
const MOST_SOCKETS = { shortly: 4, long: 28 } as const;

type Lasts = WireRequest['lasts'];
type Agent = HttpAgent | HttpsAgent;

/** Speaks HTTP/1.1 over sockets that are kept; what has to wait for one waits. */
export function http1Connection(server: string, tls: TlsSettings): Connection {
  const agents: Readonly<Record<Lasts, Agent>> = {
    shortly: agentOf(server, tls, 'shortly'),
    long: agentOf(server, tls, 'long'),
  };
  const destroyAll = () => {
    for (const agent of Object.values(agents)) agent.destroy();
  };
  const underway = new Underway(destroyAll);
  const { origin } = new URL(server);
  const connected = new WeakSet<Socket>();
  return {
    send: async (request, signal) => {
      signal.throwIfAborted();
      if (underway.isRetired)
        throw new ConnectionError('NotProcessed', 'the connection is not used any more');
      const end = underway.begin();
      try {
        return await exchange(request, signal, { origin, agent: agents[request.lasts], connected, end });
      } catch (error) {
        end();
        throw error;
      }
    },
    retire: () => underway.retire(),
    close: async () => {
      const sockets = Object.values(agents).flatMap(socketsOf);
      underway.retire();
      await closeAll(sockets);
    },
  };
}

function socketsOf({ sockets, freeSockets }: Agent): readonly Socket[] {
  return [...Object.values(sockets), ...Object.values(freeSockets)].flatMap(each => each ?? []);
}

function agentOf(server: string, tls: TlsSettings, lasts: Lasts): Agent {
  const options = { keepAlive: true, keepAliveMsecs: 30_000, maxSockets: MOST_SOCKETS[lasts] };
  if (server.startsWith('http:')) return new HttpAgent(options);
  return new HttpsAgent({ ...options, ...tls, ALPNProtocols: ['http/1.1'] });
}

/** Over what a request is sent, and whom to tell when it is over. */
type Around = {
  readonly origin: string;
  readonly agent: Agent;
  readonly connected: WeakSet<Socket>;
  readonly end: () => void;
};

function exchange(
  { method, path, headers, body }: WireRequest,
  signal: AbortSignal,
  { origin, agent, connected, end }: Around,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = {
      method,
      agent,
      headers: { ...headers, ...(body ? { 'content-length': body.length } : {}) },
    };
    const url = origin + path;
    const sent = url.startsWith('http:') ? httpRequest(url, options) : httpsRequest(url, options);
    // Of one that waits for a socket nothing is heard until there is one.
    const abort = () => {
      reject(signal.reason as Error);
      sent.destroy();
    };
    let failure: Error | undefined;
    signal.addEventListener('abort', abort, { once: true });
    sent.once('close', () => {
      signal.removeEventListener('abort', abort);
      end();
    });
    const socketState = watchSocket(sent, connected);
    sent.on('error', error => {
      failure ??= error;
      reject(failureOf(error, socketState(), signal));
    });
    sent.once('response', message => resolve(answerOf(message, sent, signal, () => failure)));
    sent.end(body);
  });
}

/** What has become of the socket of a request; one that is kept has carried others before. */
type SocketState = 'none' | 'connected' | 'kept';

/** Node's own word, reusedSocket, is missing where a socket goes from one request straight to the next. */
function watchSocket(request: ClientRequest, connected: WeakSet<Socket>): () => SocketState {
  let state: SocketState = 'none';
  request.once('socket', socket => {
    if (connected.has(socket)) {
      state = 'kept';
      return;
    }
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
      connected.add(socket);
      state = 'connected';
    });
  });
  return () => state;
}

function failureOf(error: Error, socket: SocketState, signal: AbortSignal): Error {
  if (signal.aborted) return signal.reason as Error;
  if (socket === 'none') return new ConnectionError('NotConnected', wordsOf(error));
  if (isNoHttp(error)) return new ConnectionError('Garbled', wordsOf(error));
  return new ConnectionError(socket === 'kept' ? 'Stale' : 'Broken', wordsOf(error));
}

function isNoHttp(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    String(error.code).startsWith('HPE_') &&
    error.code !== 'HPE_INVALID_EOF_STATE'
  );
}

function answerOf(
  message: IncomingMessage,
  request: ClientRequest,
  signal: AbortSignal,
  failure: () => Error | undefined,
): Answer {
  // An answer that breaks before anybody reads it is told to whoever will.
  message.on('error', () => undefined);
  const headers = Object.entries(message.headers).map(([name, value]) => [name, String(value)]);
  return {
    status: message.statusCode ?? 0,
    headers: Object.fromEntries(headers) as Record<string, string>,
    body: bodyOf(message, request, signal, failure),
  };
}

async function* bodyOf(
  message: IncomingMessage,
  request: ClientRequest,
  signal: AbortSignal,
  failure: () => Error | undefined,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of message) yield chunk as Buffer;
    if (!message.complete) throw new Error('the answer has no end');
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    // That what came is no HTTP is told to the request; its answer only hears that it ended.
    const error = failure() ?? thrown;
    throw new ConnectionError(isNoHttp(error) ? 'Garbled' : 'Broken', wordsOf(error));
  } finally {
    if (!message.complete) request.destroy();
  }
}
