import { Client, credentials, Metadata } from '@grpc/grpc-js';
import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import { onTestFinished } from 'vitest';

const ANY_SIZE = {
  'grpc.max_receive_message_length': -1,
  'grpc.max_send_message_length': -1,
  'grpc.use_local_subchannel_pool': 1,
};

const asItIs = (bytes: Buffer): Buffer => bytes;

/** How a unary call ended. */
type Outcome = { readonly code: number; readonly details: string; readonly message?: Buffer };

/** The gRPC library's client, with bytes as messages. */
export type TestClient = {
  call(path: string, message: Uint8Array, options?: { readonly deadlineMs?: number }): Promise<Outcome>;
  stream(path: string): ClientDuplexStream<Buffer, Buffer>;
};

/** A client with a connection of its own. */
export function testClient(port: number): TestClient {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), ANY_SIZE);
  onTestFinished(() => client.close());
  return {
    call: (path, message, { deadlineMs } = {}) =>
      new Promise(resolve => {
        const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
        const done = (error: ServiceError | null, answer?: Buffer) =>
          resolve(
            error
              ? { code: error.code, details: error.details }
              : { code: 0, details: '', message: answer ?? Buffer.alloc(0) },
          );
        client.makeUnaryRequest(path, asItIs, asItIs, Buffer.from(message), new Metadata(), options, done);
      }),
    stream: path => client.makeBidiStreamRequest(path, asItIs, asItIs),
  };
}

/** The status code of a stream; its messages are dropped. */
export function codeOf(stream: ClientDuplexStream<Buffer, Buffer>): Promise<number> {
  stream.on('error', () => undefined).resume();
  return new Promise(resolve => stream.on('status', ({ code }) => resolve(code)));
}
