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
  const [sockets, nears] = [new Set<Socket>(), new Set<Socket>()];
  let opened = 0;
  const server = createServer(near => {
    opened++;
    nears.add(near);
    near.once('close', () => nears.delete(near));
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
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
  return { url: `${protocol}//127.0.0.1:${bound}`, opened: () => opened, open: () => nears.size, cut };
}
