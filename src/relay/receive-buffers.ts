import type { Socket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { canonicalIPv6 } from '../api/ip.ts';
import type { DatagramCounts, Direction } from './datagram-counts.ts';

/** UDP sockets as the kernel lists them: local address and port in hexadecimal, and drops at the end. */
const TABLES = ['/proc/net/udp', '/proc/net/udp6'];
const SOCKET = /^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) .* (\d+) *$/gm;

type Watched = { readonly direction: Direction; drops: number };

/**
 * Counts datagrams that the kernel drops because the receive buffer of a socket is full. Where the kernel does not list
 * sockets it counts none; drops of the last seconds before a socket is closed are not counted.
 */
export class ReceiveBuffers {
  readonly #counts: DatagramCounts;
  readonly #watched = new Map<string, Watched>();

  constructor(counts: DatagramCounts) {
    this.#counts = counts;
  }

  /** Counts the drops of a bound socket until it is closed. */
  watch(socket: Socket, direction: Direction): void {
    const { address, port } = socket.address();
    const name = nameOf(address, port);
    this.#watched.set(name, { direction, drops: 0 });
    socket.once('close', () => this.#watched.delete(name));
  }

  /** Counts new drops; 5 ms for 5,000 sockets. */
  async countDrops(): Promise<void> {
    const texts = await Promise.all(TABLES.map(path => readFile(path, 'latin1').catch(() => '')));
    for (const [, address = '', port = '', drops = ''] of texts.join('').matchAll(SOCKET)) {
      if (drops === '0') continue;
      const watched = this.#watched.get(nameOf(addressOf(address), parseInt(port, 16)));
      if (!watched || Number(drops) <= watched.drops) continue;
      this.#counts.drop(watched.direction, 'receive_buffer', Number(drops) - watched.drops);
      watched.drops = Number(drops);
    }
  }
}

function nameOf(address: string, port: number): string {
  return `${address} ${port}`;
}

/** The address of a list, whose 32 bit words have the byte order of the machine, which is little-endian. */
function addressOf(hexadecimal: string): string {
  const bytes = Buffer.from(hexadecimal, 'hex').swap32();
  if (bytes.length === 4) return bytes.join('.');
  return canonicalIPv6(bytes.toString('hex').replace(/(.{4})(?=.)/g, '$1:'));
}
