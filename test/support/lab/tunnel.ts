import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { SocksClient } from 'socks';

/** A proxy as host:port. */
type Proxy = string;

const TIMEOUT_MS = 20_000;

/** A connection to host:port through HTTP CONNECT; fails with what the proxy answered. */
export function connectTunnel(proxy: Proxy, target: string): Promise<Socket> {
  const { host, port } = parts(proxy);
  return new Promise((resolve, reject) => {
    const connecting = request({ host, port, method: 'CONNECT', path: target, timeout: TIMEOUT_MS });
    connecting.once('error', reject);
    connecting.once('timeout', () => connecting.destroy(new Error(`no answer for CONNECT ${target}`)));
    connecting.once('connect', (response, socket: Socket, early: Buffer) => {
      // Some services send first, and their bytes may arrive together with the proxy's answer.
      if (early.length > 0) socket.unshift(early);
      if (response.statusCode === 200) resolve(socket);
      else
        reject(
          new Error(
            `CONNECT ${target}: ${response.statusCode} ${String(response.headers['tailscale-connect-error'])}`,
          ),
        );
    });
    connecting.end();
  });
}

/** A connection to host:port through SOCKS5. */
export async function socksTunnel(proxy: Proxy, target: string, timeout = TIMEOUT_MS): Promise<Socket> {
  const { socket } = await SocksClient.createConnection({
    proxy: { ...parts(proxy), type: 5 },
    command: 'connect',
    destination: parts(target),
    timeout,
  });
  return socket;
}

/** Datagrams to one target, and its answers. */
export type Datagrams = {
  readonly send: (text: string) => void;
  /** The next answer after this call. */
  readonly next: () => Promise<string>;
  readonly close: () => void;
};

/** Sends and receives datagrams of host:port through SOCKS5. */
export async function openDatagrams(proxy: Proxy, target: string): Promise<Datagrams> {
  const { remoteHost, socket: control } = await associate(proxy);
  const datagrams = createSocket('udp4');
  return {
    send: text => {
      const frame = SocksClient.createUDPFrame({ remoteHost: parts(target), data: Buffer.from(text) });
      datagrams.send(frame, remoteHost?.port ?? 0, '127.0.0.1');
    },
    next: async () => {
      const [message] = (await once(datagrams, 'message', {
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })) as [Buffer];
      return SocksClient.parseUDPFrame(message).data.toString();
    },
    close: () => {
      datagrams.close();
      control.destroy();
    },
  };
}

/** Sends datagrams to any host:port through SOCKS5, and passes each answer on with its source; returns how to send and close. */
export async function openAssociation(proxy: Proxy, onAnswer: (from: string, payload: Buffer) => void) {
  const { remoteHost, socket: control } = await associate(proxy);
  const datagrams = createSocket('udp4');
  datagrams.on('message', frame => {
    const { remoteHost: from, data } = SocksClient.parseUDPFrame(frame);
    onAnswer(`${from.host}:${from.port}`, data);
  });
  return {
    send: (target: string, data: Buffer) =>
      datagrams.send(
        SocksClient.createUDPFrame({ remoteHost: parts(target), data }),
        remoteHost?.port ?? 0,
        parts(proxy).host,
      ),
    close: () => {
      datagrams.close();
      control.destroy();
    },
  };
}

/** Sends a datagram to host:port through SOCKS5 and returns the answer. */
export async function exchangeDatagram(proxy: Proxy, target: string, text: string): Promise<string> {
  const datagrams = await openDatagrams(proxy, target);
  try {
    const answer = datagrams.next();
    datagrams.send(text);
    return await answer;
  } finally {
    datagrams.close();
  }
}

/** Sends a datagram again and again to host:port, without a proxy, until there is an answer. */
export async function exchangeUdp(target: string, text: string): Promise<string> {
  const { host, port } = parts(target);
  const socket = createSocket('udp4');
  const again = setInterval(() => socket.send(text, port, host), 50);
  try {
    const [message] = (await once(socket, 'message', { signal: AbortSignal.timeout(TIMEOUT_MS) })) as [
      Buffer,
    ];
    return message.toString();
  } finally {
    clearInterval(again);
    socket.close();
  }
}

type Association = { readonly socket: Socket; readonly remoteHost?: { readonly port: number } };

/** The address of the proxy's relay for datagrams, valid while the TCP connection is open. */
async function associate(proxy: Proxy): Promise<Association> {
  const client = new SocksClient({
    proxy: { ...parts(proxy), type: 5 },
    command: 'associate',
    destination: { host: '0.0.0.0', port: 0 },
    timeout: TIMEOUT_MS,
  });
  const established = once(client, 'established', { signal: AbortSignal.timeout(TIMEOUT_MS) });
  client.connect();
  const [bound] = (await established) as [Association];
  return bound;
}

/**
 * Sends a text through a connection, returns the first answer, and closes it; fails if the connection closes first. Where a
 * service closes first, its device drops a later connection from the same port: see the limits of docs/tailnets.md.
 */
export async function exchange(socket: Socket, text: string, timeoutMs = TIMEOUT_MS): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs);
  const ended = once(socket, 'close', { signal }).then(() => {
    throw new Error('the connection ended without an answer');
  });
  try {
    const answer = once(socket, 'data', { signal });
    socket.write(text);
    const [data] = (await Promise.race([answer, ended])) as [Buffer];
    return data.toString();
  } finally {
    socket.destroy();
  }
}

function parts(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  return { host, port: Number(address.slice(colon + 1)) };
}
