import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import type { Client, Exchange, Target } from './client.ts';
import { cancel, Connection } from './http2.ts';
import { Portions } from './portions.ts';

const HEADER_BYTES = 5;

/** google.protobuf.Int32Value of 1000. */
const THOUSAND = Buffer.from([0x08, 0xe8, 0x07]);

/** The maximum size of a message: by default a server accepts 4 MB. */
const MESSAGE_BYTES = 1 << 20;

/** A client of the echo service that speaks gRPC, all over one connection. */
export function grpcClient(target: Target): Client {
  const connection = new Connection(target);
  const call = (method: string) =>
    new Call(
      connection.request({
        ':method': 'POST',
        ':path': `/lab.v1.Echo/${method}`,
        'content-type': 'application/grpc',
        te: 'trailers',
      }),
    );
  return {
    echo: async bytes => {
      const chat = call('Chat');
      const answers: Buffer[] = [];
      for (let sent = 0; sent === 0 || sent < bytes.length; sent += MESSAGE_BYTES) {
        chat.send(bytesMessage(bytes.subarray(sent, sent + MESSAGE_BYTES)));
        answers.push(textOf(await chat.next()));
      }
      await chat.finish();
      return Buffer.concat(answers);
    },
    open: () => Promise.resolve(exchange(call('Chat'))),
    lines: () => {
      const count = call('Count');
      count.send(THOUSAND);
      count.end();
      return Promise.resolve({
        next: async () => `line ${numberIn(await count.next())}`,
        reset: () => count.cancel(),
      });
    },
    close: () => connection.close(),
  };
}

function exchange(chat: Call): Exchange {
  return {
    turn: async bytes => {
      chat.send(bytesMessage(bytes));
      return textOf(await chat.next());
    },
    ending: () => chat.ending(),
    reset: () => chat.cancel(),
  };
}

/** A call with messages in both directions. */
class Call {
  readonly #stream: ClientHttp2Stream;
  readonly #portions: Portions;
  #last: IncomingHttpHeaders = {};

  constructor(stream: ClientHttp2Stream) {
    this.#stream = stream;
    const keep = (headers: IncomingHttpHeaders) => (this.#last = headers);
    stream
      .on('response', keep)
      .on('trailers', keep)
      .on('error', () => undefined);
    this.#portions = new Portions(stream);
  }

  send(message: Buffer): void {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(message.length, 1);
    this.#stream.write(Buffer.concat([header, message]));
  }

  /** The next message; throws the status if there is none. */
  async next(): Promise<Buffer> {
    try {
      const header = await this.#portions.take(HEADER_BYTES);
      return await this.#portions.take(header.readUInt32BE(1));
    } catch (error) {
      throw new Error(`grpc-status ${this.#status()}`, { cause: error });
    }
  }

  /** Half-closes the call, and waits for the status, which must be OK. */
  async finish(): Promise<void> {
    this.end();
    if ((await this.ending()) !== 'whole') throw new Error(`grpc-status ${this.#status()}`);
  }

  /** Half-closes the call. */
  end(): void {
    this.#stream.end();
  }

  async ending(): Promise<'whole' | 'cut'> {
    await this.#portions.rest();
    return this.#status() === '0' ? 'whole' : 'cut';
  }

  cancel(): void {
    cancel(this.#stream);
  }

  #status(): string {
    return String(this.#last['grpc-status']);
  }
}

/** google.protobuf.BytesValue: one field of bytes, absent if empty. */
function bytesMessage(bytes: Buffer): Buffer {
  if (bytes.length === 0) return Buffer.alloc(0);
  const length: number[] = [];
  for (let left = bytes.length; ; left >>>= 7) {
    length.push(left < 0x80 ? left : (left & 0x7f) | 0x80);
    if (left < 0x80) break;
  }
  return Buffer.concat([Buffer.from([0x0a, ...length]), bytes]);
}

function textOf(message: Buffer): Buffer {
  if (message.length === 0) return message;
  return message.subarray(1 + message.subarray(1).findIndex(byte => byte < 0x80) + 1);
}

/** google.protobuf.Int32Value of a small number. */
function numberIn(message: Buffer): number {
  return message[1] ?? 0;
}
