import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Client, Exchange, Target } from './client.ts';
import { Portions } from './portions.ts';

/** A client that sends bytes, each exchange over a new connection, with TLS if there is a CA. */
export function bytesClient({ listener, host }: Target, ca?: Buffer): Client {
  const sockets = new Set<Socket>();
  const open = async (): Promise<Exchange & { end: () => void }> => {
    const raw = await connected(listener);
    sockets.add(raw);
    raw.once('close', () => sockets.delete(raw));
    return exchange(raw, ca ? connectTls({ socket: raw, servername: host, ca }) : raw);
  };
  return {
    open,
    echo: async bytes => {
      const one = await open();
      const got = await one.turn(bytes);
      one.end();
      await one.ending();
      return got;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function connected(listener: string): Promise<Socket> {
  const [host, port] = listener.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), host);
    socket.once('connect', () => resolve(socket)).on('error', reject);
  });
}

function exchange(raw: Socket, socket: Socket): Exchange & { readonly end: () => void } {
  // The reader gets the error.
  socket.on('error', () => undefined);
  const portions = new Portions(socket);
  return {
    turn: bytes => {
      socket.write(bytes);
      return portions.take(bytes.length);
    },
    ending: async () => {
      await portions.rest();
      // Without framing it is not known whether more bytes were to come.
      return 'cut';
    },
    reset: () => raw.resetAndDestroy(),
    end: () => socket.end(),
  };
}
