import { once } from 'node:events';
import { connect } from 'node:net';

/** Sends bytes, and returns what the server sends until it closes the connection. */
export async function exchange(port: number, ...parts: readonly string[]): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  let received = '';
  socket.on('data', data => (received += data.toString()));
  // The server may reset the connection while bytes are still being sent.
  socket.on('error', () => undefined);
  const closed = once(socket, 'close').catch(() => undefined);
  await once(socket, 'connect');
  for (const part of parts) socket.write(part);
  await closed;
  return received;
}

/** The status codes of several responses in a text. */
export function statusesIn(received: string): readonly number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(found => Number(found[1]));
}
