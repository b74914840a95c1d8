import { request } from 'node:http';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Exchange, Target } from './client.ts';
import { Portions } from './portions.ts';

const BINARY = 0x82;
const MASKED = 0x80;
const SHORT_BYTES = 126;
const LONG = 127;
const MASK_BYTES = 4;

/** Opens a WebSocket; each exchange is one message. */
export async function openWebSocket(target: Target, path: string): Promise<Exchange> {
  const socket = await upgraded(target, path);
  // The reader gets the error.
  socket.on('error', () => undefined);
  const portions = new Portions(socket);
  return {
    turn: async bytes => {
      socket.write(frameOf(bytes));
      return readFrame(portions);
    },
    ending: async () => (await portions.rest()).ending,
    reset: () => socket.resetAndDestroy(),
  };
}

function upgraded({ listener, host }: Target, path: string): Promise<Socket> {
  const headers = {
    host,
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
  };
  return new Promise((resolve, reject) => {
    request(`http://${listener}${path}`, { headers, agent: false })
      .once('upgrade', (_, socket: Socket, early: Buffer) => {
        if (early.length > 0) socket.unshift(early);
        resolve(socket);
      })
      .once('response', ({ statusCode }) => reject(new Error(`no WebSocket, but status ${statusCode}`)))
      .on('error', reject)
      .end();
  });
}

/** Frames of clients must be masked; a mask of zeros changes nothing. */
function frameOf(bytes: Buffer): Buffer {
  const { length } = bytes;
  const header =
    length < SHORT_BYTES
      ? Buffer.from([BINARY, MASKED | length])
      : Buffer.from([BINARY, MASKED | LONG, ...longLength(length)]);
  return Buffer.concat([header, Buffer.alloc(MASK_BYTES), bytes]);
}

function longLength(length: number): Buffer {
  const eight = Buffer.alloc(8);
  eight.writeBigUInt64BE(BigInt(length));
  return eight;
}

async function readFrame(portions: Portions): Promise<Buffer> {
  const [first, length = 0] = await portions.take(2);
  if (first !== 0x81 && first !== BINARY) throw new Error(`a frame that is no whole message: ${first}`);
  if (length < SHORT_BYTES) return portions.take(length);
  if (length === SHORT_BYTES) return portions.take((await portions.take(2)).readUInt16BE());
  return portions.take(Number((await portions.take(8)).readBigUInt64BE()));
}
