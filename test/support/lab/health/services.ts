import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { createServer } from 'node:net';
import type { Server as Listener, Socket } from 'node:net';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { freePorts } from '../../../../lab/process/ports.ts';
import { CERTIFICATES } from './certificates.ts';

/** A service on the loopback of this machine, whose behaviour is set while it runs. Its port stays the same. */
export type Service<Mode extends string> = {
  readonly port: number;
  readonly set: (mode: Mode) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** A request that a service has received. */
export type ReceivedRequest = { readonly path: string; readonly headers: IncomingHttpHeaders };

/** How an HTTP service answers; a service that is closed refuses connections. */
type HttpMode = keyof typeof ANSWERS | 'closed';

/** An HTTP service, and the requests that it has received. */
export type HttpService = Service<HttpMode> & {
  readonly received: readonly ReceivedRequest[];
  /** Answers each request as the function returns. */
  readonly answerBy: (answer: (request: ReceivedRequest) => keyof typeof ANSWERS) => void;
};

const DRIP_MS = 100;
/** Longer than the timeout of each check in these tests, and shorter than a test waits. */
const SLOW_MS = 5_000;

const ANSWERS = {
  ok: response => void response.end('{"backend":"health"}'),
  failing: response => void response.writeHead(503).end('a secret body'),
  redirecting: response => void response.writeHead(302, { location: '/elsewhere' }).end(),
  hanging: () => undefined,
  slow: response => void setTimeout(() => response.end(), SLOW_MS).unref(),
  dripping: response => drip(response),
} as const satisfies Readonly<Record<string, (response: ServerResponse) => void>>;

/** Sends the headers of a response that never ends, one byte after another. */
function drip({ socket }: ServerResponse): void {
  socket?.write('HTTP/1.1 200 OK\r\nx-drip: ');
  const drops = setInterval(() => socket?.write('.'), DRIP_MS);
  socket?.once('close', () => clearInterval(drops));
}

/** Starts an HTTP service. */
export async function startHttpService(): Promise<HttpService> {
  const received: ReceivedRequest[] = [];
  let answer: (request: ReceivedRequest) => keyof typeof ANSWERS = () => 'ok';
  const listener: RequestListener = ({ url: path = '', headers }, response) => {
    received.push({ path, headers });
    ANSWERS[answer({ path, headers })](response);
  };
  const server = createHttpServer(listener);
  const { port, open, shut } = await listening(server);
  const set = async (mode: HttpMode) => {
    if (mode === 'closed') return shut();
    answer = () => mode;
    await open();
  };
  return { port, received, set, answerBy: next => (answer = next), close: shut };
}

/** Starts an HTTPS service, whose mode is the certificate that it presents. */
export async function startHttpsService(): Promise<Service<keyof typeof CERTIFICATES>> {
  const server = createHttpsServer(CERTIFICATES.valid, (_, response) => ANSWERS.ok(response));
  const { port, shut } = await listening(server);
  const set = (mode: keyof typeof CERTIFICATES) => {
    server.setSecureContext(CERTIFICATES[mode]);
    return Promise.resolve();
  };
  return { port, set, close: shut };
}

/** Starts a TCP service that sends back what it receives. */
export async function startTcpService(): Promise<Service<'ok' | 'closed'>> {
  const server = createServer(socket => socket.on('error', () => undefined).pipe(socket));
  const { port, open, shut } = await listening(server);
  return { port, set: mode => (mode === 'closed' ? shut() : open()), close: shut };
}

/** The name of the service that a gRPC service reports the health of. */
export const GRPC_SERVICE = 'health.v1.Test';

const STATUSES = {
  ok: { '': 'SERVING', [GRPC_SERVICE]: 'SERVING' },
  notServing: { '': 'SERVING', [GRPC_SERVICE]: 'NOT_SERVING' },
  unknownService: { '': 'SERVING' },
} as const;

/** Starts a gRPC service with the health service alone. */
export async function startGrpcService(): Promise<Service<keyof typeof STATUSES>> {
  const [port = 0] = await freePorts(1);
  const running: Server[] = [];
  const close = () => {
    for (const server of running.splice(0)) server.forceShutdown();
    return Promise.resolve();
  };
  const set = async (mode: keyof typeof STATUSES) => {
    await close();
    running.push(await serveGrpcHealth(port, mode));
  };
  await set('ok');
  return { port, set, close };
}

function serveGrpcHealth(port: number, mode: keyof typeof STATUSES): Promise<Server> {
  const server = new Server();
  new HealthImplementation(STATUSES[mode]).addToServer(server);
  return new Promise((resolve, reject) => {
    const credentials = ServerCredentials.createInsecure();
    server.bindAsync(`127.0.0.1:${port}`, credentials, error => (error ? reject(error) : resolve(server)));
  });
}

type Listening = {
  readonly port: number;
  readonly open: () => Promise<void>;
  readonly shut: () => Promise<void>;
};

/** Listens on a free port, which can be closed, with all connections, and opened again. */
async function listening(server: Listener): Promise<Listening> {
  const [port = 0] = await freePorts(1);
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  const open = async () => {
    if (!server.listening) await once(server.listen(port, '127.0.0.1'), 'listening');
  };
  const shut = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of connections) socket.destroy();
    await closed;
  };
  await open();
  return { port, open, shut };
}
