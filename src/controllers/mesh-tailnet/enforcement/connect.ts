import { connect } from 'node:net';
import type { Clock } from '../../../api/clock.ts';
import type { Outcome } from './verdict.ts';

/** Tries to connect to an address and a port; never fails, and sends nothing. */
export type Connect = (address: string, port: number) => Promise<Outcome>;

const TIMEOUT_MS = 2000;

/** How an attempt ended that fails with one of these errors; with any other, it shows nothing. */
const OUTCOMES: Readonly<Record<string, Outcome>> = {
  ECONNREFUSED: 'refused',
  ECONNRESET: 'refused',
  // The ICMP messages of a network plugin that rejects, and its refusal on this node.
  EHOSTUNREACH: 'refused',
  EACCES: 'refused',
  EPERM: 'refused',
  ETIMEDOUT: 'timed-out',
};

/** Connects by TCP, within a time. */
export function tcpConnect(clock: Pick<Clock, 'after'>, timeoutMs = TIMEOUT_MS): Connect {
  return (address, port) =>
    new Promise(resolve => {
      const socket = connect({ host: address, port });
      const end = (outcome: Outcome) => {
        cancel();
        socket.destroy();
        resolve(outcome);
      };
      const cancel = clock.after(timeoutMs, () => end('timed-out'));
      socket.once('connect', () => end('accepted'));
      socket.on('error', error => end(OUTCOMES['code' in error ? String(error.code) : ''] ?? 'failed'));
    });
}
