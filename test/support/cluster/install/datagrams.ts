import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../../lab/process/wait.ts';
import { IS_LONG } from '../../eventually.ts';

/** Datagrams at a steady rate to a service that sends each back to its sender. */
export interface DatagramLoad {
  readonly returned: () => number;
  /** How long those that came back were on their way, in milliseconds: 99 of 100 at most this long. */
  readonly onTheWayMs: () => number;
  /** Waits until a number of further datagrams have come back. */
  readonly more: (count: number) => Promise<void>;
  /** Stops, waits for the last ones, and returns when those that were lost had been sent, in milliseconds since the start. */
  readonly stop: () => Promise<readonly number[]>;
}

export type DatagramOptions = {
  readonly host: string;
  readonly port: number;
  readonly perSecond: number;
  /** The number of sockets, which send in turn. */
  readonly clients: number;
  readonly bytes?: number;
};

const TICK_MS = 5;
/** A datagram that has not come back by then is lost. */
const LOST_AFTER_MS = 5_000;

/** Starts the datagrams; each is sent on time, whether or not earlier ones have come back. */
export async function startDatagrams(options: DatagramOptions): Promise<DatagramLoad> {
  const { host, port, perSecond, clients, bytes = 512 } = options;
  const sockets = await Promise.all(Array.from({ length: clients }, () => openSocket()));
  const underWay = new Map<string, number>();
  const tookMs: number[] = [];
  let sent = 0;
  sockets.forEach((socket, client) => {
    socket.on('message', message => {
      // Only to the socket that has sent it.
      const key = message.toString('latin1').split(' ', 1)[0] ?? '';
      const sentMs = underWay.get(key);
      if (!key.startsWith(`${client}/`) || message.length !== bytes || sentMs === undefined) return;
      underWay.delete(key);
      tookMs.push(performance.now() - startMs - sentMs);
    });
  });
  const startMs = performance.now();
  const tick = () => {
    const due = ((performance.now() - startMs) * perSecond) / 1_000;
    for (; sent < due; sent++) {
      const client = sent % clients;
      const key = `${client}/${sent}`;
      underWay.set(key, Math.round(performance.now() - startMs));
      sockets[client]?.send(`${key} `.padEnd(bytes, 'x'), port, host);
    }
  };
  const timer = setInterval(tick, TICK_MS);
  return {
    returned: () => tookMs.length,
    onTheWayMs: () => tookMs.toSorted((a, b) => a - b)[Math.floor(tookMs.length * 0.99)] ?? 0,
    more: async count => {
      const wanted = tookMs.length + count;
      await until(`${count} more datagrams`, () => tookMs.length >= wanted, { everyMs: 20 });
    },
    stop: async () => {
      clearInterval(timer);
      for (let waited = 0; underWay.size > 0 && waited < LOST_AFTER_MS; waited += TICK_MS)
        await sleep(TICK_MS);
      for (const socket of sockets) socket.close();
      return [...underWay.values()];
    },
  };
}

const AGAIN_MS = 1_000;

/**
 * Sends a datagram of its own from each of many sockets at once, again each second until it comes back; returns how many were
 * sent more than once, and those that came back to another socket.
 */
export async function exchangeAtOnce(
  { host, port }: Pick<DatagramOptions, 'host' | 'port'>,
  count: number,
): Promise<{ readonly late: number; readonly strays: readonly string[] }> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openSocket()));
  const left = new Map(sockets.map((socket, index) => [`client ${index}`, socket]));
  const strays: string[] = [];
  sockets.forEach((socket, index) => {
    socket.on('message', message => {
      const own = `client ${index}`;
      if (message.toString() === own) left.delete(own);
      else strays.push(`${own} received ${message.toString()}`);
    });
  });
  const send = () => {
    for (const [own, socket] of left) socket.send(own, port, host);
  };
  send();
  let late = 0;
  const timer = setInterval(() => {
    late = Math.max(late, left.size);
    send();
  }, AGAIN_MS);
  try {
    const poll = (note: (seen: string) => void) => {
      note(`${left.size} have nothing`);
      return Promise.resolve(left.size === 0);
    };
    await until('all datagrams to come back', poll);
  } finally {
    clearInterval(timer);
    for (const socket of sockets) socket.close();
  }
  return { late, strays };
}

function openSocket(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 });
    socket.once('error', reject);
    socket.bind(0, () => {
      socket.off('error', reject).on('error', () => undefined);
      resolve(socket);
    });
  });
}

/**
 * Datagrams that were sent from 1 s before something ended are lost, until 5 s after that; on a busy machine, until 2 s after the
 * node has reported it.
 */
export function lostWithoutNeed(lost: readonly number[], reportedMs: number): readonly number[] {
  const recoveredMs = IS_LONG ? 5_000 : Math.max(5_000, reportedMs + 2_000);
  return lost.filter(atMs => atMs < -1_000 || atMs > recoveredMs);
}

/** What is sent in 100 ms, or in the time for which datagrams are on their way on a busy machine. */
export function maxOnTheWay(perSecond: number, onTheWayMs: number): number {
  return (perSecond * (IS_LONG ? 100 : Math.max(100, onTheWayMs))) / 1_000;
}
