import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** A way to a service that returns what it receives; `exchange` returns the milliseconds of a message and its reply. */
export type Path = { readonly exchange: () => Promise<number>; readonly close: () => void };

/** Datagrams to a port of this machine; `exchange` fails where no reply comes in time. */
export async function openPath(port: number, message: Buffer, timeoutMs = 5000): Promise<Path> {
  const socket = createSocket('udp4');
  socket.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  return {
    exchange: async () => {
      const reply = once(socket, 'message', { signal: AbortSignal.timeout(timeoutMs) });
      const begun = performance.now();
      socket.send(message);
      await reply;
      return performance.now() - begun;
    },
    close: () => void socket.close(),
  };
}
