import { Socket } from 'node:net';
import type { OnReadOpts, SocketConstructorOpts } from 'node:net';

/**
 * Reads what comes into the same memory again and again. By itself Node sets new memory aside for each read, of which
 * tens of megabytes pile up before they are freed. It reads into given memory only for sockets that it makes, not for
 * those that it accepts: so the accepted one hands over what it reads from, and stays to be counted. Where it has no
 * such thing, it reads as it is used to. The piece that is taken lies in the memory, or not, until the function returns.
 */
export function readOver(accepted: Socket, memory: Buffer, take: (piece: Buffer) => void): Socket {
  const handle: unknown = Reflect.get(accepted, '_handle');
  if (!handle) return accepted.on('data', take);
  const options: SocketConstructorOpts & { readonly handle: unknown; readonly onread: OnReadOpts } = {
    handle,
    onread: {
      buffer: memory,
      callback: bytes => {
        take(memory.subarray(0, bytes));
        return true;
      },
    },
  };
  Reflect.set(accepted, '_handle', null);
  return new Socket(options).once('close', () => accepted.destroy());
}
