import { once } from 'node:events';
import { connect } from 'node:http2';
import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';

const TIMEOUT_MS = 60_000;
const HEADER_BYTES = 5;

/** The result of a call: its status code, and the message if there was one. */
export type GrpcAnswer = { readonly status: number; readonly message: Buffer };

/** Calls a method with one message over a connection of its own. */
export async function callGrpc(
  socket: Socket,
  authority: string,
  method: string,
  message: Buffer,
): Promise<GrpcAnswer> {
  const session = connect(`http://${authority}`, { createConnection: () => socket });
  try {
    const failed = once(session, 'error').then(([error]) => {
      throw error as Error;
    });
    const headers = {
      ':method': 'POST',
      ':path': method,
      'content-type': 'application/grpc',
      te: 'trailers',
    };
    const stream = session.request(headers, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    stream.end(framed(message));
    return await Promise.race([answerOf(stream), failed]);
  } finally {
    session.destroy();
    socket.destroy();
  }
}

/** The status is in the trailers, or, without a message, in the headers. */
async function answerOf(stream: ClientHttp2Stream): Promise<GrpcAnswer> {
  let last: IncomingHttpHeaders = {};
  const keep = (headers: IncomingHttpHeaders) => {
    last = headers;
  };
  stream.on('response', keep).on('trailers', keep);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { status: Number(last['grpc-status']), message: Buffer.concat(chunks).subarray(HEADER_BYTES) };
}

function framed(message: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}

/** A message whose first field is a short text, such as google.protobuf.StringValue. */
export function textMessage(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([0x0a, bytes.length]), bytes]);
}
