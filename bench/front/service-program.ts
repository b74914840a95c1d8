/**
 * Run by the bench `front`: the service of a device. The first byte of a connection is what it does: return each byte, send
 * as fast as it can, or only receive. All share a port: a device refuses connections now and then where several ports are in
 * use. A line on standard input is answered with what was received.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { Received, sendForever } from './received.ts';
import { MODES } from './scene.ts';

const received = new Received();

function accept(socket: Socket): void {
  received.add(socket);
  socket.on('error', () => socket.destroy());
  socket.once('data', first => {
    received.count(socket, first.length);
    const mode = first.subarray(0, 1).toString();
    if (mode === MODES.down) sendForever(socket);
    if (mode === MODES.echo) socket.write(first);
    socket.on('data', chunk => {
      received.count(socket, chunk.length);
      if (mode === MODES.echo) socket.write(chunk);
    });
  });
}

const server = createServer({ noDelay: true }, accept).listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
await once(server, 'listening');
console.log(JSON.stringify({ port: (server.address() as AddressInfo).port }));
createInterface({ input: process.stdin })
  .on('line', () => console.log(JSON.stringify(received.report())))
  .on('close', () => process.exit());
