import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import packet from 'dns-packet';

/** The records of a name, or the code with which the server answers: NXDOMAIN, SERVFAIL, or not at all. */
export type Zone = Record<string, { readonly ttl?: number; readonly addresses: readonly string[] } | Failure>;
type Failure = 'NXDOMAIN' | 'SERVFAIL' | 'silent';

/** A DNS server on loopback, whose answers a test may change. */
export type DnsServer = {
  readonly address: string;
  /** By name in lower case; other names do not exist. */
  readonly zone: Zone;
  /** The queries that it has got, such as `A web.example.com`. */
  readonly queries: readonly string[];
  readonly close: () => Promise<void>;
};

const CODES = { NXDOMAIN: 3, SERVFAIL: 2, silent: 0 } as const;

/** Starts a DNS server. */
export async function startDnsServer(zone: Zone): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const queries: string[] = [];
  socket.on('message', (message, { port, address }) => {
    const { id = 0, questions = [] } = packet.decode(message);
    const [{ name, type } = { name: '', type: 'A' }] = questions;
    queries.push(`${type} ${name}`);
    const found = zone[name.toLowerCase()] ?? 'NXDOMAIN';
    if (found === 'silent') return;
    const isFailure = typeof found === 'string';
    const answers = isFailure ? [] : recordsOf(name, type, found);
    const flags = packet.RECURSION_DESIRED | (isFailure ? CODES[found] : 0);
    socket.send(packet.encode({ id, type: 'response', flags, questions, answers }), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    zone,
    queries,
    close: () => new Promise(resolve => void socket.close(resolve)),
  };
}

function recordsOf(
  name: string,
  type: string,
  { addresses, ttl = 60 }: { readonly addresses: readonly string[]; readonly ttl?: number },
): packet.StringAnswer[] {
  const ofType = addresses.filter(address => (type === 'AAAA') === address.includes(':'));
  return type === 'A' || type === 'AAAA' ? ofType.map(data => ({ name, type, ttl, data })) : [];
}
