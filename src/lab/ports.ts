import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';

/** Free TCP ports on an address, all different. Nobody holds them: start what uses them soon. */
export async function freePorts(count: number, host = '127.0.0.1'): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(host)));
  const ports = servers.map(server => (server.address() as AddressInfo).port);
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))));
  return ports;
}

function listen(host: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, host, () => resolve(server));
  });
}
