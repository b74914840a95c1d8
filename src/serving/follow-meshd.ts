import { connect } from 'node:net';
import type { Socket } from 'node:net';
import type { Clock } from '../api/clock.ts';
import type { Front } from './front.ts';

/** The time between attempts to connect to a meshd that is away, or that ends each connection. */
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
  clock: Pick<Clock, 'after' | 'now'>,
): { close(): void } {
  let socket: Socket;
  let cancel = () => undefined as void;
  let isClosed = false;
  let redialledMs = -Infinity;
  // It listens on each address in turn, and stops on none before it listens on all.
  let changed = Promise.resolve();
  const change = (next: () => Promise<void> | void) => {
    changed = changed.then(next);
  };
  const open = () => {
    let isConnected = false;
    socket = connect(socketPath).resume();
    socket.on('error', () => undefined);
    socket.once('connect', () => {
      isConnected = true;
      change(() => front.listen());
    });
    socket.once('close', () => {
      if (isClosed) return;
      if (!isConnected) change(() => front.stopAccepting());
      if (isConnected && clock.now() - redialledMs >= RETRY_MS) {
        redialledMs = clock.now();
        open();
      } else cancel = clock.after(RETRY_MS, open);
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
