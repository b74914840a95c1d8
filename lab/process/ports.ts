import { mkdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf } from './errors.ts';

/** Below the kernel's ephemeral ports, and above the usual ports of servers. */
const LOWEST = 20_000;
const HIGHEST = 32_000;

/**
 * Free ports, all different. No outgoing connection takes one before it is used, as could happen to an ephemeral port, and
 * for a minute no other process of this user is given one of them.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (given.has(port)) continue;
    given.add(port);
    if (claim(port) && (await isFree(port))) found.push(port);
  }
  return found;
}

/** Ports that were returned before and may not be in use yet. */
const given = new Set<number>();

/** Longer than a program takes until it listens. */
const CLAIMED_FOR_MS = 60_000;

/** Claims a port by a file, which is new or old, so that two processes that start programs at once have different ports. */
function claim(port: number): boolean {
  const folder = join(tmpdir(), `mesh-gateway-ports-${process.getuid?.() ?? ''}`);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${port}`);
  try {
    writeFileSync(file, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
  const now = Date.now();
  if (now - statSync(file).mtimeMs < CLAIMED_FOR_MS) return false;
  utimesSync(file, now / 1000, now / 1000);
  return true;
}

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
