import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { encodeHeaders } from '../../../src/extension/grpc/http2/hpack/encode.ts';
import { readOver } from '../../../src/extension/grpc/http2/read-over.ts';
import { Session } from '../../../src/extension/grpc/http2/session.ts';
import type { Http2Stream } from '../../../src/extension/grpc/http2/stream.ts';

const BEGIN = encodeHeaders({ ':status': '200', 'content-type': 'application/octet-stream' });
const USUAL_WINDOW = 65_535;

const END = encodeHeaders({ 'x-end': 'yes' });

/** What can be seen of a server of pages. */
export type Pages = {
  readonly port: number;
  /** What went wrong on our side. */
  readonly mistakes: readonly unknown[];
  readonly open: ReadonlySet<Session>;
};

type Wish = {
  /** The answer to a request with this body. */
  readonly answer?: (body: Buffer) => Uint8Array;
  readonly window?: number;
};

/** HTTP/2 as our gRPC server speaks it, without gRPC: each request is answered with a page. */
export async function servePages({ answer = page, window = 65_535 }: Wish = {}): Promise<Pages> {
  const mistakes: unknown[] = [];
  const open = new Set<Session>();
  const memory = Buffer.alloc(65_536);
  const server = createServer({ noDelay: true, pauseOnConnect: true }, accepted => {
    const socket = readOver(accepted, memory, piece => session.read(piece));
    const session = new Session({
      socket,
      settings: { streams: 100, window, headerBytes: 16_384 },
      window: Math.max(USUAL_WINDOW + 1, 4 * window),
      now: () => performance.now(),
      requested: stream => answerWith(stream, answer),
      closed: () => open.delete(session),
      failed: (error, by) => {
        if (by === 'server') mistakes.push(error);
      },
    });
    open.add(session);
    session.begin();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const session of open) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, mistakes, open };
}

function answerWith(stream: Http2Stream, answer: (body: Buffer) => Uint8Array): void {
  const pieces: Buffer[] = [];
  stream.listen({
    data: piece => void pieces.push(Buffer.from(piece)),
    finished: () => {
      stream.begin(BEGIN);
      stream.write([answer(Buffer.concat(pieces))]);
      stream.end(END);
    },
    closed: () => undefined,
  });
}

function page(): Uint8Array {
  return Buffer.from('a page with some words');
}
