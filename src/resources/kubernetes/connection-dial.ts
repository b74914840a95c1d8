import type { Socket } from 'node:net';
import { connect } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import type { Clock } from '../../api/clock.ts';
import type { TlsSettings } from './access.ts';
import { ConnectionError, wordsOf } from './connection.ts';

/** What a server and we have agreed to speak. */
export type Dialled = { readonly socket: TLSSocket; readonly speaks: 'h2' | 'http/1.1' };

/** Opens connections; all of its sockets are there until they are closed. */
export interface Dialler {
  dial(): Promise<Dialled>;
  /** Fulfilled when all sockets are gone. */
  close(): Promise<void>;
}

const LONGEST_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;

/** Opens TLS connections to a server, on which both agree on HTTP/2 where the server can. */
export function dialler(server: string, tls: TlsSettings, clock: Clock): Dialler {
  const { hostname, port } = new URL(server);
  const host = hostname.replace(/^\[|\]$/g, '');
  const sockets = new Set<TLSSocket>();
  const dial = async (): Promise<Dialled> => {
    const socket = opened({ ...tls, host, port: Number(port || 443), ALPNProtocols: ['h2', 'http/1.1'] });
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.setNoDelay(true);
    await secured(socket, clock);
    return { socket, speaks: socket.alpnProtocol === 'h2' ? 'h2' : 'http/1.1' };
  };
  return {
    dial,
    close: () => closeAll(sockets),
  };
}

/** Ends sockets; fulfilled when they are gone. */
export async function closeAll(sockets: Iterable<Socket>): Promise<void> {
  const isGone = (socket: Socket) =>
    new Promise<void>(resolve => {
      if (socket.closed) resolve();
      else socket.once('close', () => resolve()).destroy();
    });
  await Promise.all(Array.from(sockets, isGone));
}

/** Certificates and keys that are none make Node throw. */
function opened(options: ConnectionOptions): TLSSocket {
  try {
    return connect(options);
  } catch (error) {
    throw new ConnectionError('NotConnected', wordsOf(error));
  }
}

function secured(socket: TLSSocket, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (message: string) => {
      cancel();
      reject(new ConnectionError('NotConnected', message));
      socket.destroy();
    };
    const cancel = clock.after(LONGEST_MS, () => fail(`no connection within ${LONGEST_MS / 1000} s`));
    socket.once('secureConnect', () => {
      cancel();
      resolve();
    });
    socket.once('error', error => fail(wordsOf(error)));
    socket.once('close', () => fail('the connection was closed before it was secure'));
    // Whatever happens later is told to whoever speaks over it.
    socket.on('error', () => undefined);
  });
}
