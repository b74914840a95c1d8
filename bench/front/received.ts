import type { Socket } from 'node:net';

/** What the open connections of a program have received. */
export type ReceivedReport = {
  /** Of all connections since the start, closed ones too. */
  readonly bytes: number;
  /** When this was counted, by the clock of the program. */
  readonly atMs: number;
  readonly open: number;
  /** The bytes of the open connection that has received the least. */
  readonly least: number;
};

/** Counts the bytes that connections receive. */
export class Received {
  readonly #sockets = new Map<Socket, number>();
  #bytes = 0;

  add(socket: Socket): void {
    this.#sockets.set(socket, 0);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  count(socket: Socket, bytes: number): void {
    this.#bytes += bytes;
    const before = this.#sockets.get(socket);
    if (before !== undefined) this.#sockets.set(socket, before + bytes);
  }

  report(): ReceivedReport {
    const open = this.#sockets.size;
    const least = open === 0 ? 0 : Math.min(...this.#sockets.values());
    return { bytes: this.#bytes, atMs: performance.now(), open, least };
  }
}

/** Sends as fast as the connection takes it, until that closes. */
export function sendForever(socket: Socket): void {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  const send = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', send);
  send();
}
