import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { codeOf } from './errors.ts';

/** Free TCP ports on an address, all different. Nobody holds them: start what uses them soon. */
export async function freePorts(count: number, host = '127.0.0.1'): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(host)));
  const ports = servers.map(server => (server.address() as AddressInfo).port);
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))));
  return ports;
}

/** Whether nothing listens on a port, on any address of this machine. */
export async function isFree(port: number): Promise<boolean> {
  try {
    const server = await listen('0.0.0.0', port);
    await new Promise(resolve => server.close(resolve));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return false;
    throw error;
  }
}

function listen(host: string, port = 0): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}
