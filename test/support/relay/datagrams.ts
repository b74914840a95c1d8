import { createSocket } from 'node:dgram';
import type { RemoteInfo, Socket } from 'node:dgram';
import { once } from 'node:events';

/** A UDP service; its function returns the replies to a datagram. */
export type UdpService = {
  readonly address: string;
  readonly port: number;
  /** The datagrams that it received. */
  readonly received: readonly Buffer[];
  /** Sends to the source of the last datagram. */
  readonly sendToLast: (text: string) => void;
  readonly close: () => void;
};

/** Starts a service, by default one that echoes. */
export async function startUdpService(
  replies: (payload: Buffer) => readonly Buffer[] = payload => [payload],
  address = '127.0.0.1',
): Promise<UdpService> {
  const socket = createSocket({
    type: address.includes(':') ? 'udp6' : 'udp4',
    recvBufferSize: 4 * 1024 * 1024,
  });
  const received: Buffer[] = [];
  let last: RemoteInfo | undefined;
  socket.on('message', (payload, from) => {
    last = from;
    received.push(payload);
    for (const reply of replies(payload)) socket.send(reply, from.port, from.address);
  });
  socket.bind(0, address);
  await once(socket, 'listening');
  return {
    address,
    port: socket.address().port,
    received,
    sendToLast: text => socket.send(text, last?.port, last?.address),
    close: () => void socket.close(),
  };
}

const [RESEND_MS, TIMEOUT_MS] = [200, 60_000];

/** A client of one port of the relay. */
export type UdpClient = {
  readonly socket: Socket;
  readonly received: readonly Buffer[];
  send(...payloads: readonly (Buffer | string)[]): void;
  /** Sends a datagram until a reply equals it, as clients of UDP do; returns the reply. */
  exchange(text: string): Promise<string>;
  close(): void;
};

/** Opens a client of an address and port. */
export async function openClient(address: string, port: number): Promise<UdpClient> {
  const socket = createSocket({
    type: address.includes(':') ? 'udp6' : 'udp4',
    recvBufferSize: 4 * 1024 * 1024,
  });
  const received: Buffer[] = [];
  socket.on('message', payload => received.push(payload));
  // A port that is closed is reported to clients.
  socket.on('error', () => undefined);
  socket.connect(port, address);
  await once(socket, 'connect');
  const client: UdpClient = {
    socket,
    received,
    send: (...payloads) => {
      for (const payload of payloads) socket.send(payload);
    },
    // By events: a thousand clients that poll need a processor for themselves.
    exchange: text =>
      new Promise((resolve, reject) => {
        const isReply = (payload: Buffer) => payload.toString() === text;
        const end = (settle: () => void) => {
          clearInterval(resend);
          clearTimeout(timeout);
          socket.off('message', check);
          settle();
        };
        const check = () => {
          if (received.some(isReply)) end(() => resolve(text));
        };
        const resend = setInterval(() => client.send(text), RESEND_MS);
        const timeout = setTimeout(() => end(() => reject(new Error(`no reply to ${text}`))), TIMEOUT_MS);
        socket.on('message', check);
        client.send(text);
        check();
      }),
    close: () => void socket.close(),
  };
  return client;
}
