import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** A relay before a server, which counts connections. */
export type Relay = {
  readonly url: string;
  /** The number of all connections so far. */
  readonly opened: () => number;
  /** The number of open connections. */
  readonly open: () => number;
  /** Resets all connections. */
  readonly cut: () => void;
};

/** Relays connections of loopback to a server, until the end of the test. */
export async function relayTo({ protocol, hostname, port }: URL): Promise<Relay> {
  const [sockets, clients] = [new Set<Socket>(), new Set<Socket>()];
  let opened = 0;
  const server = createServer(client => {
    opened++;
    clients.add(client);
    client.once('close', () => clients.delete(client));
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    cut();
    await closed;
  });
  const { port: bound } = server.address() as AddressInfo;
  return { url: `${protocol}//127.0.0.1:${bound}`, opened: () => opened, open: () => clients.size, cut };
}
