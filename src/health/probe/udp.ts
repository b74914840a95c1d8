import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Attempt } from './attempt.ts';
import { CheckError, checkErrorOf } from './check-error.ts';
import type { Check, ProbeProxy } from '../check.ts';

/** Sends one datagram of random bytes, through the relay of a member or directly; any datagram back is a success. */
export type CheckUdp = (attempt: Attempt, check: Check, member: ProbeProxy | undefined) => Promise<void>;

/** The local port of the last check of each address and port. */
type LocalPorts = Map<string, number>;

const MAX_LOCAL_PORTS = 20_000;

/** Creates UDP checks, which send from the same port each time: a relay holds an association for each port for some time. */
export function createUdpChecks(): CheckUdp {
  const localPorts: LocalPorts = new Map();
  return async (attempt, { via, target }, member) => {
    const [address = ''] = target.addresses;
    if (localPorts.size > MAX_LOCAL_PORTS) localPorts.clear();
    if (via.is === 'direct') return exchange(attempt, address, target.port, localPorts);
    if (via.is === 'pool' || member?.pod === undefined) {
      throw new CheckError('unreached', 'UDP is checked through relays only');
    }
    try {
      await exchange(attempt, member.pod, via.port, localPorts);
    } catch (error) {
      // It is an error of the relay: of errors behind it, the relay reports nothing.
      throw new CheckError('unreached', `the relay does not receive: ${checkErrorOf(error).message}`);
    }
  };
}

function exchange(attempt: Attempt, address: string, port: number, localPorts: LocalPorts): Promise<void> {
  const key = `${address} ${port}`;
  const localPort = localPorts.get(key) ?? 0;
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    attempt.atEnd(() => void socket.close());
    socket.on('error', error => {
      if (localPort !== 0 && 'code' in error && error.code === 'EADDRINUSE') {
        localPorts.delete(key);
        resolve(exchange(attempt, address, port, localPorts));
      } else {
        reject(checkErrorOf(error));
      }
    });
    socket.once('message', () => resolve());
    socket.once('connect', () => {
      localPorts.set(key, socket.address().port);
      socket.send(randomBytes(16));
    });
    socket.bind({ port: localPort, exclusive: true }, () => socket.connect(port, address));
  });
}
