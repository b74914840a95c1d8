/**
 * Run by the bench `front`: a client of proxies. Each line on standard input is a command of it, and is answered with what was
 * received or measured.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { median } from '../figures.ts';
import { Received, sendForever } from './received.ts';
import { AT_ONCE, MODES } from './scene.ts';
import type { Address, ConnectResult, ExchangeResult, LoadCommand } from './scene.ts';

const TIMEOUT_MS = 10_000;
const BYTES = 64;

const received = new Received();
const sockets = new Set<Socket>();

async function connect(proxy: Address, { host, port }: Address): Promise<Socket> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const opening = request({ ...proxy, method: 'CONNECT', path: `${host}:${port}`, agent: false });
  const connected = once(opening, 'connect', { signal });
  opening.end();
  const [response, socket, early] = (await connected) as [IncomingMessage, Socket, Buffer];
  socket.on('error', () => socket.destroy());
  if (early.length > 0) socket.unshift(early);
  if (response.statusCode === 200) return socket.setNoDelay(true);
  socket.destroy();
  throw new Error(`the proxy responded with ${response.statusCode}`);
}

/** A tunnel through which a byte has come back. */
async function openEcho(proxy: Address, target: Address): Promise<Socket> {
  const socket = await connect(proxy, target);
  socket.write(MODES.echo);
  await once(socket, 'data', { signal: AbortSignal.timeout(TIMEOUT_MS) });
  return socket;
}

/** Opens all tunnels, and then starts what they are for. */
async function open({ proxy, target, mode, streams }: LoadCommand & { do: 'open' }): Promise<object> {
  let left = streams;
  const worker = async () => {
    while (left-- > 0) {
      const socket = await (mode === 'echo' ? openEcho(proxy, target) : connect(proxy, target));
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
      received.add(socket);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, streams) }, worker));
  for (const socket of sockets) {
    socket.on('data', chunk => received.count(socket, chunk.length));
    if (mode !== 'echo') socket.write(MODES[mode]);
    if (mode === 'up') sendForever(socket);
  }
  return received.report();
}

/** By resets, so that what is still in buffers is discarded. */
async function close(): Promise<object> {
  const closed = [...sockets].map(socket => once(socket, 'close'));
  for (const socket of sockets) socket.resetAndDestroy();
  await Promise.all(closed);
  return {};
}

/** Opens a tunnel, has a byte returned, and closes it, again and again. */
async function connectFor({ proxy, target, ms }: LoadCommand & { do: 'connect' }): Promise<ConnectResult> {
  const startedAt = performance.now();
  const result = { made: 0, failed: 0, lastFailure: '' };
  const worker = async () => {
    while (performance.now() - startedAt < ms) {
      try {
        const socket = await openEcho(proxy, target);
        socket.destroy();
        result.made += 1;
      } catch (error) {
        result.failed += 1;
        result.lastFailure = String(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { ...result, tookMs: performance.now() - startedAt };
}

/** Through each proxy in turns, one message at a time, so that other load affects all alike. */
async function exchange(command: LoadCommand & { do: 'exchange' }): Promise<ExchangeResult> {
  const { proxies, target, warmUp, count } = command;
  const tunnels = await Promise.all(proxies.map(proxy => openEcho(proxy, target)));
  const took = tunnels.map((): number[] => []);
  for (let turn = 0; turn < warmUp + count; turn++) {
    for (const [index, tunnel] of tunnels.entries()) {
      const ms = await roundTrip(tunnel);
      if (turn >= warmUp) took[index]?.push(ms);
    }
  }
  for (const tunnel of tunnels) tunnel.destroy();
  return { p50: took.map(median) };
}

const MESSAGE = Buffer.alloc(BYTES, 'x');

function roundTrip(tunnel: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    const startedAt = performance.now();
    const fail = () => reject(new Error('a tunnel was closed'));
    const count = (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes < BYTES) return;
      const ms = performance.now() - startedAt;
      tunnel.off('data', count).off('close', fail);
      resolve(ms);
    };
    tunnel.on('data', count).once('close', fail);
    tunnel.write(MESSAGE);
  });
}

function run(command: LoadCommand): object | Promise<object> {
  switch (command.do) {
    case 'open':
      return open(command);
    case 'report':
      return received.report();
    case 'close':
      return close();
    case 'connect':
      return connectFor(command);
    case 'exchange':
      return exchange(command);
  }
}

console.log('{}');
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await run(JSON.parse(line) as LoadCommand)));
}
await close();
