import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { formatAddress } from '../telemetry/address.ts';
import type { Log } from '../telemetry/log.ts';
import { SettingError } from '../telemetry/setting-error.ts';
import { join } from './hops.ts';
import type { HopOptions } from './hops.ts';

/** Listeners that pass connections on to the proxy of meshd. */
export type ProxyAddresses = { readonly close: () => Promise<void> };

/**
 * Serves the proxy of meshd on more addresses of its pod, those of the other family: tailscaled listens on one address. Throws
 * SettingError where it cannot listen.
 */
export async function openProxyAddresses(
  addresses: readonly string[],
  { proxy, maxConnections }: HopOptions,
  { log }: { readonly log: Log },
): Promise<ProxyAddresses> {
  const sockets = new Set<Socket>();
  const accept = (client: Socket) => {
    client.on('error', () => undefined);
    if (sockets.size >= maxConnections) {
      log.warn('the proxy has too many connections on the other addresses of the pod', { maxConnections });
      client.resetAndDestroy();
      return;
    }
    sockets.add(client);
    const upstream = connect({ ...proxy, noDelay: true, allowHalfOpen: true });
    upstream.on('error', () => client.resetAndDestroy());
    client.once('close', () => sockets.delete(client));
    join(client, upstream);
  };
  const servers: Server[] = [];
  const close = async () => {
    const closed = servers.filter(server => server.listening).map(server => once(server, 'close'));
    for (const server of servers) server.close();
    for (const socket of sockets) socket.destroy();
    await Promise.all(closed);
  };
  for (const host of addresses) {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, accept);
    servers.push(server);
    try {
      server.listen({ host, port: proxy.port });
      await once(server, 'listening');
    } catch (error) {
      await close();
      const { code } = error as NodeJS.ErrnoException;
      const address = formatAddress({ host, port: proxy.port });
      throw new SettingError('POD_IPS', `cannot listen on ${address}: ${code}`);
    }
  }
  return { close };
}
