/**
 * Run by the bench `relay`: a SOCKS5 proxy that returns each frame, so that it does little beside the relay. All
 * associations share a UDP socket, which is also an echo service. A line on standard input is answered with the number of frames since the last one.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createInterface } from 'node:readline';

const HOST = '127.0.0.1';
let frames = 0;

const udp = createSocket({
  type: 'udp4',
  recvBufferSize: 4 * 1024 * 1024,
  // Node's own takes a turn of the event loop even for an address.
  lookup: (address, _family, callback) => callback(null, address, 4),
});
udp.on('message', (frame, from) => {
  frames += 1;
  udp.send(frame, from.port, from.address);
});
const bound = once(udp, 'listening');
udp.bind(0, HOST);
await bound;

const granted = Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]);
granted.writeUInt16BE(udp.address().port, 8);

function accept(connection: Socket): void {
  connection.on('error', () => connection.destroy());
  connection.once('data', () => {
    connection.write(Buffer.from([5, 0]));
    connection.once('data', () => connection.write(granted));
  });
}

const server = createServer(accept).listen({ port: 0, host: HOST, backlog: 4096 });
await once(server, 'listening');
console.log(JSON.stringify({ port: (server.address() as AddressInfo).port, udpPort: udp.address().port }));
createInterface({ input: process.stdin })
  .on('line', () => {
    console.log(JSON.stringify({ frames }));
    frames = 0;
  })
  .on('close', () => process.exit());
