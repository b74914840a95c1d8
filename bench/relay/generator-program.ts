/**
 * Run by the bench `relay`: clients that send datagrams to ports of the relay. Each line on standard input is a load, which
 * is answered with what was sent and received.
 */
import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Load, LoadResult } from './scene.ts';

const { ports, clients: count } = JSON.parse(process.argv[2] ?? '') as {
  readonly ports: readonly number[];
  readonly clients: number;
};

let received = 0;
let onReceived: (client: Socket) => void = () => undefined;
const clients = await Promise.all(Array.from({ length: count }, (_, index) => openClient(index)));

async function openClient(index: number): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1024 * 1024 });
  socket.on('message', () => {
    received += 1;
    onReceived(socket);
  });
  socket.connect(ports[index % ports.length] ?? 0, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** Sends at a rate, in steps of the event loop. */
async function sendAtRate(payload: Buffer, rate: number, seconds: number): Promise<number> {
  const startedAt = performance.now();
  let sent = 0;
  const total = rate * seconds;
  while (sent < total) {
    const due = Math.min(total, ((performance.now() - startedAt) / 1000) * rate);
    for (; sent < due; sent++) clients[sent % clients.length]?.send(payload);
    await new Promise(resolve => setImmediate(resolve));
  }
  return sent;
}

/** Sends each client's next datagram when a reply arrives, with some of each client on the way. */
async function sendInWindow(payload: Buffer, window: number, seconds: number): Promise<number> {
  let sent = 0;
  const send = (client: Socket) => {
    sent += 1;
    client.send(payload);
  };
  onReceived = send;
  for (const client of clients) for (let one = 0; one < window; one++) send(client);
  await sleep(seconds * 1000);
  onReceived = () => undefined;
  return sent;
}

/** Replies that arrive within this time count as received. */
const SETTLE_MS = 5000;

async function settled(sent: number): Promise<void> {
  const until = performance.now() + SETTLE_MS;
  while (received < sent && performance.now() < until) await sleep(10);
}

async function run({ bytes, seconds, ...load }: Load): Promise<LoadResult> {
  const payload = Buffer.alloc(bytes, 'x');
  received = 0;
  const startedAt = performance.now();
  const sent = await ('rate' in load
    ? sendAtRate(payload, load.rate, seconds)
    : sendInWindow(payload, load.window, seconds));
  const tookMs = performance.now() - startedAt;
  await settled(sent);
  return { sent, received, tookMs };
}

console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(JSON.parse(line) as Load)));
}
for (const client of clients) client.close();
