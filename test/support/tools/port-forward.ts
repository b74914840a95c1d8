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

/** Forwards connections to pods to a port of loopback, as an API server and kubelet do over WebSockets. */
export function servePortForwards(
  server: Server,
  portOf: (pod: string, port: number) => number,
  refused: (path: string) => boolean,
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
    const [, pod = ''] = /\/pods\/([^/]+)\/portforward$/.exec(pathname) ?? [];
    const port = Number(searchParams.get('ports'));
    sockets.handleUpgrade(request, socket, head, webSocket => {
      forward(webSocket, port, portOf(pod, port));
    });
  });
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
