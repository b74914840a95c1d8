import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Clock } from '../../../src/api/clock.ts';

/** What happens to a response on its way. */
export type Loss =
  /** It arrives late, and at a low rate. */
  | { readonly is: 'slow'; readonly delayMs: number; readonly bytesPerSecond: number }
  /** After some of its bytes the connection is closed, is reset, or stays silent. */
  | { readonly is: 'closed' | 'reset' | 'silent'; readonly afterBytes: number };

/** A path of TCP connections to a server. */
export type Path = {
  readonly url: string;
  /** Sets the server on loopback to which new connections lead. */
  readonly leadTo: (url: string) => void;
  /** Responses have a loss from now on, at most a number of them. */
  readonly lose: (loss: Loss, responses?: number) => void;
  /** No response has a loss from now on. */
  readonly heal: () => void;
  readonly close: () => Promise<void>;
};

/** Opens a path, which leads nowhere yet; what is slow waits on the clock. */
export async function openPath(clock: Pick<Clock, 'now' | 'after'>): Promise<Path> {
  let to = 'http://127.0.0.1:9';
  const sockets = new Set<Socket>();
  let current: Loss | undefined;
  let left = 0;
  const next = () => (left-- > 0 ? current : undefined);
  const server = createServer(client => {
    const upstream = connect(Number(new URL(to).port), '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => sockets.delete(socket));
    }
    client.once('close', () => upstream.destroy());
    upstream.once('close', () => client.end());
    forward(client, upstream, next, clock);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo: url => {
      to = url;
    },
    lose: (loss, responses = Infinity) => {
      current = loss;
      left = responses;
    },
    heal: () => {
      left = 0;
    },
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

/** Forwards both directions; the first byte of a request decides on the loss of its response. */
function forward(
  client: Socket,
  upstream: Socket,
  next: () => Loss | undefined,
  clock: Pick<Clock, 'now' | 'after'>,
): void {
  let loss: Loss | undefined;
  let received: number | undefined;
  let sendAt = 0;
  client.on('data', bytes => {
    if (received !== 0) loss = next();
    received = 0;
    upstream.write(bytes);
  });
  upstream.on('data', bytes => {
    const before = received ?? 0;
    received = before + bytes.length;
    if (!loss) client.write(bytes);
    else if (loss.is === 'slow') {
      const startsAt = before === 0 ? clock.now() + loss.delayMs : Math.max(clock.now(), sendAt);
      sendAt = startsAt + (bytes.length / loss.bytesPerSecond) * 1000;
      sendPieces(bytes, startsAt, loss.bytesPerSecond);
    } else if (before === 0 || before < loss.afterBytes) {
      cut(bytes.subarray(0, loss.afterBytes - before), loss);
    }
  });

  const sendPieces = (bytes: Buffer, startsAt: number, bytesPerSecond: number) => {
    for (let at = 0; at < bytes.length; at += PIECE) {
      const end = Math.min(at + PIECE, bytes.length);
      const ms = startsAt - clock.now() + (end / bytesPerSecond) * 1000;
      clock.after(ms, () => client.write(bytes.subarray(at, end)));
    }
  };
  const cut = (bytes: Buffer, { is, afterBytes }: Loss & { readonly afterBytes: number }) => {
    client.write(bytes, () => {
      if ((received ?? 0) < afterBytes || is === 'silent') return;
      if (is === 'reset') client.resetAndDestroy();
      else client.end();
    });
  };
}

const PIECE = 512;
