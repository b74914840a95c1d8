import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tcpConnect } from '../../../../src/controllers/mesh-tailnet/enforcement/connect.ts';
import { systemClock } from '../../../../src/runtime/clock.ts';

const connect = tcpConnect(systemClock, 10_000);

/** Listens for one connection and never takes it, so that the kernel drops the packets of those after it. */
const BLACK_HOLE = `
const { createServer } = require('node:net');
const { parentPort } = require('node:worker_threads');
const server = createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
`;

async function blackHole(): Promise<number> {
  const worker = new Worker(BLACK_HOLE, { eval: true });
  onTestFinished(async () => {
    await worker.terminate();
  });
  const [port = 0] = (await once(worker, 'message')) as readonly number[];
  return port;
}

describe('an attempt to connect', () => {
  it('is accepted by a server that listens, to which nothing is sent', async () => {
    const received: Buffer[] = [];
    const server = createServer();
    const ended = new Promise<void>(resolve => {
      server.once('connection', socket => {
        socket.on('data', data => void received.push(data));
        socket.on('error', () => undefined);
        socket.once('close', () => resolve());
      });
    });
    server.listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    expect(await connect('127.0.0.1', (server.address() as AddressInfo).port)).toBe('accepted');
    await ended;
    expect(received).toEqual([]);
  });

  it('is refused where nothing listens', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    expect(await connect('127.0.0.1', port)).toBe('refused');
  });

  it('times out where packets are dropped', async () => {
    const port = await blackHole();
    const impatient = tcpConnect(systemClock, 200);
    let outcome = await impatient('127.0.0.1', port);
    // The first ones wait in the kernel to be taken.
    for (let times = 0; times < 5 && outcome === 'accepted'; times++)
      outcome = await impatient('127.0.0.1', port);
    expect(outcome).toBe('timed-out');
  });

  it('shows nothing where the address is none', async () => {
    expect(await connect('not an address', 5005)).toBe('failed');
  });
});
