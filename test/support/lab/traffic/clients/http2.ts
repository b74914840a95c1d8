import { connect, constants } from 'node:http2';
import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from 'node:http2';
import type { Client, Target } from './client.ts';
import { Portions } from './portions.ts';
import { sendWhole } from './send-whole.ts';
import { textLines } from './text-lines.ts';

/** One connection for many requests, reopened after it has ended. */
export class Connection {
  readonly #target: Target;
  #session: ClientHttp2Session | undefined;

  constructor(target: Target) {
    this.#target = target;
  }

  /** Starts a request. */
  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    if (!this.#session || this.#session.closed || this.#session.destroyed) this.#session = this.#connect();
    return this.#session.request({ ':authority': this.#target.host, ...headers });
  }

  #connect(): ClientHttp2Session {
    const session = connect(`http://${this.#target.listener}`);
    // Each request reports it itself.
    session.on('error', () => undefined);
    return session;
  }

  /** Closes it. */
  close(): void {
    this.#session?.destroy();
  }
}

/** Cancels a request. */
export function cancel(stream: ClientHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL);
}

/** A client of HTTP/2 with prior knowledge, over one connection. */
export function http2Client(target: Target): Client {
  const connection = new Connection(target);
  const echoes = () => answered(connection.request({ ':method': 'POST', ':path': '/echo' }));
  return {
    echo: async bytes => {
      const { stream, answer } = echoes();
      sendWhole(bytes, stream);
      const got = await (await answer).rest();
      if (got.ending === 'cut') throw new Error(`the answer was cut behind ${got.bytes.length} bytes`);
      return got.bytes;
    },
    open: () => {
      const { stream, answer } = echoes();
      return Promise.resolve({
        turn: async bytes => {
          stream.write(bytes);
          return (await answer).take(bytes.length);
        },
        ending: async () => (await (await answer).rest()).ending,
        reset: () => cancel(stream),
      });
    },
    lines: async () => {
      const stream = connection.request({ ':path': '/lines/1000?everyMs=100' });
      await statusOf(stream);
      return textLines(stream, () => cancel(stream));
    },
    close: () => connection.close(),
  };
}

type Answered = { readonly stream: ClientHttp2Stream; readonly answer: Promise<Portions> };

function answered(stream: ClientHttp2Stream): Answered {
  const answer = statusOf(stream).then(async status => {
    const portions = new Portions(stream);
    if (status === 200) return portions;
    throw new Error(`status ${status}: ${(await portions.rest()).bytes.toString()}`);
  });
  answer.catch(() => undefined);
  return { stream, answer };
}

function statusOf(stream: ClientHttp2Stream): Promise<number> {
  return new Promise((resolve, reject) => {
    stream.once('response', headers => resolve(headers[':status'] ?? 0));
    stream.on('error', reject);
    stream.once('close', () => reject(new Error('it was reset before there was an answer')));
  });
}
