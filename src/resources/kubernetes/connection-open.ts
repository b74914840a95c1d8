import type { Clock } from '../../api/clock.ts';
import type { Account } from './access.ts';
import { ConnectionError } from './connection.ts';
import type { Connection } from './connection.ts';
import { dialler } from './connection-dial.ts';
import type { Dialled, Dialler } from './connection-dial.ts';
import { http1Connection } from './http1.ts';
import { Http2Connection } from './http2.ts';
import { orAborted } from './or-aborted.ts';

/** Speaks HTTP/2 to a server where it can, else HTTP/1.1; nothing is opened before the first request. */
export function openConnection({ server, tls }: Pick<Account, 'server' | 'tls'>, clock: Clock): Connection {
  if (server.startsWith('http:')) return http1Connection(server, tls);
  const dials = dialler(server, tls, clock);
  const all = new Set<Connection>();
  let chosen: Promise<Connection> | undefined;
  let isRetired = false;

  const choose = async (): Promise<Connection> => {
    const first = await dials.dial();
    if (first.speaks === 'http/1.1') first.socket.destroy();
    const connection =
      first.speaks === 'h2'
        ? new Http2Connection(server, startingWith(first, dials), clock)
        : http1Connection(server, tls);
    all.add(connection);
    if (isRetired) connection.retire();
    return connection;
  };
  /** What a server speaks may change when it comes back. */
  const forget = (failed: Promise<Connection>) => {
    if (chosen === failed) chosen = undefined;
    failed.then(connection => connection.retire()).catch(() => undefined);
  };
  return {
    send: async (request, signal) => {
      signal.throwIfAborted();
      const used = (chosen ??= choose());
      try {
        const connection = await orAborted(used, signal);
        return await connection.send(request, signal);
      } catch (error) {
        if (error instanceof ConnectionError && error.reason === 'NotConnected') forget(used);
        throw error;
      }
    },
    retire: () => {
      isRetired = true;
      for (const connection of all) connection.retire();
    },
    close: async () => {
      isRetired = true;
      await Promise.all([...all].map(connection => connection.close()));
      await dials.close();
    },
  };
}

/** A connection that is there already comes first. */
function startingWith(first: Dialled, rest: Dialler): Dialler {
  let left: Dialled | undefined = first;
  return {
    dial: async () => {
      const there = left;
      left = undefined;
      return there ?? (await rest.dial());
    },
    close: () => rest.close(),
  };
}
