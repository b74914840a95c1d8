import type { IncomingMessage, Server } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

/** The parts of ws that are used; it has no types of its own, and is that of the library whose client is tested. */
type WebSocket = {
  readonly send: (data: Buffer) => void;
  readonly close: () => void;
  readonly on: (event: 'message' | 'close', listener: (data: Buffer) => void) => void;
};
type WebSocketServer = {
  readonly handleUpgrade: (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    use: (webSocket: WebSocket) => void,
  ) => void;
};
const library = createRequire(import.meta.url).resolve('@kubernetes/client-node');
const { WebSocketServer: Sockets } = createRequire(library)('ws') as {
  readonly WebSocketServer: new (options: object) => WebSocketServer;
};

const PROTOCOL = 'v4.channel.k8s.io';
const [DATA, ERROR] = [0, 1] as const;

/** The end of a command in a pod: its exit code and what it wrote, or a status of its own; undefined for one that hangs. */
export type CommandEnd = { readonly exitCode?: number; readonly stderr?: string; readonly status?: object };

/** Commands in pods. */
export type RunCommand = (pod: string, command: readonly string[]) => CommandEnd | undefined;

/** Forwards connections to pods to a port of loopback, and runs commands in them, as an API server and kubelet do over WebSockets. */
export function servePortForwards(
  server: Server,
  portOf: (pod: string, port: number) => number,
  refused: (path: string) => boolean,
  run: RunCommand = () => ({}),
): void {
  const sockets = new Sockets({
    noServer: true,
    handleProtocols: (offered: ReadonlySet<string>) => offered.has(PROTOCOL) && PROTOCOL,
  });
  server.on('upgrade', (request, socket, head) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    if (refused(pathname)) {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    const [, pod = '', call] = /\/pods\/([^/]+)\/(portforward|exec)$/.exec(pathname) ?? [];
    const port = Number(searchParams.get('ports'));
    sockets.handleUpgrade(request, socket, head, webSocket => {
      if (call === 'exec') end(webSocket, run(pod, searchParams.getAll('command')));
      else forward(webSocket, port, portOf(pod, port));
    });
  });
}

const [STDERR, STATUS] = [2, 3] as const;

/** The last channel has how the command ended. */
function end(webSocket: WebSocket, ended: CommandEnd | undefined): void {
  if (!ended) return;
  const { exitCode = 0, stderr = '', status } = ended;
  const causes = [{ reason: 'ExitCode', message: String(exitCode) }];
  const failure = { status: 'Failure', reason: 'NonZeroExitCode', details: { causes } };
  const value = status ?? (exitCode === 0 ? { status: 'Success' } : failure);
  const send = (channel: number, data: string) =>
    webSocket.send(Buffer.concat([Buffer.of(channel), Buffer.from(data)]));
  send(STDERR, '');
  if (stderr !== '') send(STDERR, stderr);
  send(STATUS, JSON.stringify(value));
}

/** Each channel begins with the port of the pod; a first byte names the channel of a message. */
function forward(webSocket: WebSocket, port: number, to: number): void {
  const send = (channel: number, data: Uint8Array) =>
    webSocket.send(Buffer.concat([Buffer.of(channel), data]));
  for (const channel of [DATA, ERROR]) send(channel, Buffer.of(port & 0xff, port >> 8));
  const connection = connect(to, '127.0.0.1');
  connection.on('data', data => send(DATA, data)).on('end', () => webSocket.close());
  connection.on('error', error =>
    send(ERROR, Buffer.from(`an error occurred forwarding ${port}: ${error.message}`)),
  );
  webSocket.on('message', data => connection.write(data.subarray(1)));
  webSocket.on('close', () => connection.destroy());
}
