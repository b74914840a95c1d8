import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { canonicalIPv6 } from '../api/ip.ts';

/** UDP sockets as the kernel lists them: local address and port in hexadecimal, and drops at the end. */
const TABLES = ['/proc/net/udp', '/proc/net/udp6'];
const SOCKET = /^ *\d+: (([0-9A-F]+):([0-9A-F]{4})) .* (\d+) *$/gm;

/**
 * Returns a function that counts the datagrams to ports on these addresses that the kernel has dropped since the last call,
 * because a receive buffer was full. It returns 0 where the kernel has no such list; with 5,000 sockets it takes 5 ms.
 */
export function receiveBufferDrops(
  addresses: readonly string[],
): (ports: { has(port: number): boolean }) => Promise<number> {
  const own = new Set(addresses.map(address => (isIPv6(address) ? canonicalIPv6(address) : address)));
  let last = new Map<string, number>();
  return async ports => {
    const texts = await Promise.all(TABLES.map(path => readFile(path, 'latin1').catch(() => '')));
    const drops = new Map<string, number>();
    let added = 0;
    for (const [, socket = '', address = '', port = '', text = ''] of texts.join('').matchAll(SOCKET)) {
      if (!ports.has(parseInt(port, 16)) || !own.has(addressOf(address))) continue;
      const count = Number(text);
      drops.set(socket, count);
      // A port that was bound again begins at 0.
      added += Math.max(0, count - (last.get(socket) ?? 0));
    }
    last = drops;
    return added;
  };
}

/** The address of a list, whose 32 bit words have the byte order of the machine, which is little-endian. */
function addressOf(hexadecimal: string): string {
  const bytes = Buffer.from(hexadecimal, 'hex').swap32();
  if (bytes.length === 4) return bytes.join('.');
  return canonicalIPv6(bytes.toString('hex').replace(/(.{4})(?=.)/g, '$1:'));
}
