import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { codeOf } from './errors.ts';

/** Below the kernel's ephemeral ports, and above the usual ports of servers. */
const LOWEST = 20_000;
const HIGHEST = 32_000;

/**
 * Free ports, all different. They are not reserved, but no outgoing connection takes one before it is used, as could
 * happen to an ephemeral port.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) found.push(port);
  }
  return found;
}

/** Ports that were returned before and may not be in use yet. */
const given = new Set<number>();

/** Whether nothing listens on a port, on any address of this machine. */
export async function isFree(port: number): Promise<boolean> {
  try {
    const server = await listen(port);
    await new Promise(resolve => server.close(resolve));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return false;
    throw error;
  }
}

/** Fails, naming all of them, where something listens on a port that cannot be another. */
export async function expectFree(ports: Readonly<Record<string, number>>): Promise<void> {
  const taken: string[] = [];
  for (const [what, port] of Object.entries(ports))
    if (!(await isFree(port))) taken.push(`${port} (${what})`);
  if (taken.length === 0) return;
  throw new Error(`ports are in use: ${taken.join(', ')}: end what listens there`);
}

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '0.0.0.0', () => resolve(server));
  });
}
