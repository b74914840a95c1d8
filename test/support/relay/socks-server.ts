import { createSocket } from 'node:dgram';
import type { SocketType, Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** What the server does with a request for an association; `end` closes it as soon as it is open. */
type Answer = 'open' | 'refuse' | 'hang' | 'end' | 'garble';

/** A SOCKS5 server for UDP, as meshd has one, which a test can let fail. */
export type SocksServer = {
  readonly host: string;
  readonly port: number;
  /** Associations that are open. */
  readonly open: () => number;
  /** Requests for an association since the start. */
  readonly requests: () => number;
  answer: Answer;
  /** Answers the requests that hang. */
  readonly proceed: () => void;
  /** Turns the frame of a reply into those that are sent. */
  frames: (frame: Buffer) => readonly Buffer[];
  /** Closes all connections, and refuses others until it is started again on the same port. */
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
};

/** The address and payload of a frame. */
function parseFrame(frame: Buffer): {
  readonly address: string;
  readonly port: number;
  readonly payload: Buffer;
} {
  const isIPv6 = frame[3] === 4;
  const end = isIPv6 ? 20 : 8;
  const bytes = frame.subarray(4, end);
  const groups = Array.from(
    { length: 8 },
    (_, index) => isIPv6 && bytes.readUInt16BE(index * 2).toString(16),
  );
  const address = isIPv6 ? groups.join(':') : bytes.join('.');
  return { address, port: frame.readUInt16BE(end), payload: frame.subarray(end + 2) };
}

/** Starts a server, on a free port of 127.0.0.1 by default. */
export async function startSocksServer(at: { host?: string; port?: number } = {}): Promise<SocksServer> {
  const connections = new Set<Socket>();
  let listening: Server | undefined;
  const hanging: Socket[] = [];
  let requests = 0;
  let open = 0;
  let chosenPort = at.port ?? 0;
  const server: SocksServer = {
    host: at.host ?? '127.0.0.1',
    get port() {
      return chosenPort;
    },
    open: () => open,
    requests: () => requests,
    answer: 'open',
    proceed: () => {
      for (const connection of hanging.splice(0)) void associate(connection);
    },
    frames: frame => [frame],
    start: async () => {
      const listener = createServer(accept);
      listening = listener;
      listener.once('listening', () => (chosenPort = (listener.address() as AddressInfo).port));
      listener.listen(chosenPort, server.host);
      await once(listener, 'listening');
    },
    stop: async () => {
      for (const connection of connections) connection.destroy();
      await new Promise(resolve => listening?.close(resolve));
      await Promise.all([...connections].map(connection => once(connection, 'close')));
    },
  };

  function accept(connection: Socket): void {
    connections.add(connection);
    connection.on('error', () => undefined);
    connection.once('close', () => connections.delete(connection));
    connection.once('data', () => {
      connection.write(Buffer.from([5, 0]));
      connection.once('data', () => respond(connection));
    });
  }

  function respond(connection: Socket): void {
    requests++;
    if (server.answer === 'hang') hanging.push(connection);
    else if (server.answer === 'garble') connection.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    else if (server.answer === 'refuse') connection.end(Buffer.from([5, 1, 0, 1, 0, 0, 0, 0, 0, 0]));
    else void associate(connection);
  }

  async function associate(connection: Socket): Promise<void> {
    const targets = new Map<string, UdpSocket>();
    const own = openSocket('udp4').bind(0, server.host);
    await once(own, 'listening');
    open++;
    own.on('message', (frame, { port, address }) =>
      forward(frame, targets, reply => {
        for (const sent of server.frames(reply)) own.send(sent, port, address);
      }),
    );
    connection.once('close', () => {
      open--;
      for (const socket of [own, ...targets.values()]) socket.close();
    });
    const response = Buffer.from([5, 0, 0, 1, ...server.host.split('.').map(Number), 0, 0]);
    response.writeUInt16BE(own.address().port, 8);
    connection.write(response);
    if (server.answer === 'end') connection.end();
  }

  await server.start();
  return server;
}

/** Sends the payload of a frame to its target from a socket of its own, and replies of the target back as frames. */
function forward(frame: Buffer, targets: Map<string, UdpSocket>, reply: (frame: Buffer) => void): void {
  const { address, port, payload } = parseFrame(frame);
  const header = frame.subarray(0, frame.length - payload.length);
  const key = header.toString('hex');
  const target = targets.get(key) ?? openSocket(address.includes(':') ? 'udp6' : 'udp4');
  if (!targets.has(key)) {
    targets.set(key, target);
    target.on('error', () => undefined);
    target.on('message', replied => reply(Buffer.concat([header, replied])));
  }
  target.send(payload, port, address);
}

/** A socket whose receive buffer is no bottleneck. */
function openSocket(type: SocketType): UdpSocket {
  return createSocket({ type, recvBufferSize: 4 * 1024 * 1024 });
}
