import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Clock } from '../api/clock.ts';
import type { Front } from './front.ts';

/** The time between attempts to connect to a meshd that is away. */
const RETRY_MS = 100;

/**
 * Has a front listen only while the LocalAPI of its meshd does. Envoy retries a connection that is refused at another mesh pod. One
 * that is accepted and then ends is no connect failure, even before the response to CONNECT: for Envoy it was established.
 *
 * An idle connection to the LocalAPI, which has no timeout, ends as soon as meshd does.
 */
export function followMeshd(
  socketPath: string,
  front: Pick<Front, 'listen' | 'stopAccepting'>,
  clock: Pick<Clock, 'after'>,
): { close(): void } {
  let socket: Socket;
  let cancel = () => undefined as void;
  let isClosed = false;
  const open = () => {
    let isConnected = false;
    socket = connect(socketPath).resume();
    socket.on('error', () => undefined);
    socket.once('connect', () => {
      isConnected = true;
      void front.listen();
    });
    socket.once('close', () => {
      if (isClosed) return;
      if (isConnected) {
        open();
        return;
      }
      front.stopAccepting();
      cancel = clock.after(RETRY_MS, open);
    });
  };
  open();
  return {
    close: () => {
      isClosed = true;
      cancel();
      socket.destroy();
    },
  };
}
