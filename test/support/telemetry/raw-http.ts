import { once } from 'node:events';
import { connect } from 'node:net';

/** Sends bytes as they are, and gives everything that comes back until the server ends the connection. */
export async function exchange(port: number, ...parts: readonly string[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  let received = '';
  socket.on('data', data => (received += data.toString()));
  // A server that has heard enough may reset the connection while we still send.
  socket.on('error', () => undefined);
  const closed = once(socket, 'close').catch(() => undefined);
  await once(socket, 'connect');
  for (const part of parts) socket.write(part);
  await closed;
  return received;
}

/** The status codes of the responses in a text of several. */
export function statusesIn(received: string): readonly number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(found => Number(found[1]));
}
