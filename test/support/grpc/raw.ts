import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** The types of frames of HTTP/2. */
export const FRAMES = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  window: 8,
  more: 9,
} as const;

const ACK = 1;
const END_STREAM = 1;
const END_HEADERS = 4;
const FRAME_BYTES = 9;

/** A received frame. */
export type Frame = {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
};

/** Encodes any frame, valid or not. */
export function frame(
  type: number,
  flags: number,
  id: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const head = Buffer.alloc(FRAME_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

/** An uncompressed header. */
export function header(name: string, value: string): Buffer {
  const [nameBytes, valueBytes] = [Buffer.from(name), Buffer.from(value)];
  return Buffer.concat([Buffer.of(0, nameBytes.length), nameBytes, lengthOf(valueBytes), valueBytes]);
}

function lengthOf(bytes: Buffer): Buffer {
  if (bytes.length < 127) return Buffer.of(bytes.length);
  const rest = bytes.length - 127;
  return Buffer.of(127, (rest & 127) | 128, ((rest >> 7) & 127) | 128, rest >> 14);
}

/** The headers of a call. */
export function callHeaders(path: string, more: Readonly<Record<string, string>> = {}): Buffer {
  const headers = {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': path,
    ':authority': 'test',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...more,
  };
  return Buffer.concat(Object.entries(headers).map(([name, value]) => header(name, value)));
}

/** A message with its prefix. */
export function message(bytes: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** A raw HTTP/2 connection on which a test can send any bytes. */
export class RawConnection {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  #unread: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', piece => this.#read(piece));
  }

  /** Connects without sending anything. */
  static async silent(port: number): Promise<RawConnection> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    onTestFinished(() => void socket.destroy());
    return new RawConnection(socket);
  }

  /** Connects and sends the HTTP/2 preface and settings, as pairs of identifier and value. */
  static async open(
    port: number,
    settings: readonly (readonly [number, number])[] = [],
  ): Promise<RawConnection> {
    const connection = await RawConnection.silent(port);
    const payload = Buffer.concat(
      settings.map(([name, value]) => {
        const setting = Buffer.alloc(6);
        setting.writeUInt16BE(name, 0);
        setting.writeUInt32BE(value, 2);
        return setting;
      }),
    );
    connection.send(Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(FRAMES.settings, 0, 0, payload));
    connection.send(frame(FRAMES.window, 0, 0, Buffer.of(0x7f, 0, 0, 0)));
    return connection;
  }

  send(...parts: readonly Uint8Array[]): void {
    if (!this.socket.destroyed) this.socket.write(Buffer.concat(parts));
  }

  /** Starts a call. */
  call(id: number, path: string, more: Readonly<Record<string, string>> = {}): void {
    this.send(frame(FRAMES.headers, END_HEADERS, id, callHeaders(path, more)));
  }

  /** Sends data of a call. */
  data(id: number, bytes: Uint8Array, then: 'more' | 'end'): void {
    this.send(frame(FRAMES.data, then === 'end' ? END_STREAM : 0, id, bytes));
  }

  /** The received frames of a type and a stream. */
  of(type: keyof typeof FRAMES, id?: number): readonly Frame[] {
    return this.frames.filter(found => found.type === FRAMES[type] && (id === undefined || found.id === id));
  }

  /** Resolves when the other side has closed. */
  async closed(): Promise<void> {
    if (!this.socket.closed) await new Promise(resolve => this.socket.once('close', resolve));
  }

  #read(piece: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, piece]);
    while (this.#unread.length >= FRAME_BYTES) {
      const end = FRAME_BYTES + this.#unread.readUIntBE(0, 3);
      if (this.#unread.length < end) return;
      const [type = 0, flags = 0] = this.#unread.subarray(3, 5);
      const id = this.#unread.readUInt32BE(5);
      this.frames.push({ type, flags, id, payload: Buffer.from(this.#unread.subarray(FRAME_BYTES, end)) });
      this.#unread = this.#unread.subarray(end);
      if (type === FRAMES.settings && flags === 0) this.send(frame(FRAMES.settings, ACK, 0));
    }
  }
}
