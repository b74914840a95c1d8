import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { Attempt } from './attempt.ts';
import { CheckError, checkErrorOf } from './check-error.ts';
import type { Check, Member } from './target.ts';

/** Sends one datagram of random bytes, through the relay of a member or directly; any datagram back is a success. */
export async function checkUdp(
  attempt: Attempt,
  { via, target }: Check,
  member: Member | undefined,
): Promise<void> {
  const [address = ''] = target.addresses;
  if (via.is === 'direct') return exchange(attempt, address, target.port);
  if (via.is === 'pool' || member?.pod === undefined) {
    throw new CheckError('unreached', 'UDP is checked through relays only');
  }
  try {
    await exchange(attempt, member.pod, via.port);
  } catch (error) {
    // It is an error of the relay: of errors behind it, the relay reports nothing.
    throw new CheckError('unreached', `the relay does not receive: ${checkErrorOf(error).message}`);
  }
}

function exchange(attempt: Attempt, address: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    attempt.atEnd(() => void socket.close());
    socket.on('error', error => reject(checkErrorOf(error)));
    socket.once('message', () => resolve());
    socket.connect(port, address, (error?: Error) => {
      if (error) reject(checkErrorOf(error));
      else socket.send(randomBytes(16));
    });
  });
}
