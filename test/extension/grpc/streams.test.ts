import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { GrpcError } from '../../../src/extension/grpc/method.ts';
import type { ServerStream, StreamListener, Streaming } from '../../../src/extension/grpc/method.ts';
import { eventually } from '../../support/eventually.ts';
import { codeOf, testClient } from '../../support/grpc/client.ts';
import { FRAMES, frame, message, RawConnection } from '../../support/grpc/raw.ts';
import { echoStream, serving } from '../../support/grpc/serving.ts';

const PATH = '/test.Service/Stream';

/** A method that records the callbacks of its listeners, and exposes its streams. */
function watched(reactions: Partial<StreamListener> = {}) {
  const callbacks: string[] = [];
  const streams: ServerStream[] = [];
  const open = (stream: ServerStream): StreamListener => {
    streams.push(stream);
    return {
      message: bytes => {
        callbacks.push(Buffer.from(bytes).toString());
        reactions.message?.(bytes);
      },
      finished: () => {
        callbacks.push('finished');
        reactions.finished?.();
      },
      drained: () => {
        callbacks.push('drained');
        reactions.drained?.();
      },
      closed: () => {
        callbacks.push('closed');
        reactions.closed?.();
      },
    };
  };
  return { callbacks, streams, method: { kind: 'streaming', open } satisfies Streaming };
}

const fails = () => {
  throw new Error('a secret');
};

describe('a stream', () => {
  it('carries messages both ways, in order, and ends when the caller does', async () => {
    const { port } = await serving({ methods: { [PATH]: echoStream } });
    const stream = testClient(port).stream(PATH);
    const answers: string[] = [];
    stream.on('data', (bytes: Buffer) => answers.push(bytes.toString()));
    const ended = new Promise(resolve => stream.on('status', resolve));
    const sent = Array.from({ length: 500 }, (_, index) => `message ${index} ${'x'.repeat(index * 7)}`);
    for (const text of sent) stream.write(Buffer.from(text));
    stream.end();
    expect(await ended).toMatchObject({ code: 0 });
    expect(answers).toEqual(sent);
  });

  it('is notified when the caller disconnects, and never after that', async () => {
    const { callbacks, streams, method } = watched();
    const server = await serving({ methods: { [PATH]: method } });
    const raw = await RawConnection.open(server.port);
    raw.call(1, PATH);
    raw.data(1, message(Buffer.from('hello')), 'more');
    await eventually(() => expect(callbacks).toEqual(['hello']));
    raw.send(frame(FRAMES.reset, 0, 1, Buffer.of(0, 0, 0, 8)));
    await eventually(() => expect(callbacks.at(-1)).toBe('closed'));
    expect(streams[0]?.send(Buffer.from('late'))).toBe(false);
    streams[0]?.end();
    expect(callbacks.at(-1)).toBe('closed');
    await eventually(() => expect(server.calls).toEqual([{ method: PATH, code: 'CANCELLED' }]));
  });

  it.each([
    ['before any message', 0],
    ['after a message', 1],
  ])('is ended by the server with a status, %s', async (_, messages) => {
    const { callbacks, streams, method } = watched();
    const server = await serving({ methods: { [PATH]: method } });
    const stream = testClient(server.port).stream(PATH);
    const ended = new Promise(resolve =>
      stream
        .on('error', () => undefined)
        .resume()
        .on('status', resolve),
    );
    stream.write(Buffer.from('hello'));
    await eventually(() => expect(callbacks).toEqual(['hello']));
    for (let index = 0; index < messages; index++) streams[0]?.send(Buffer.from('answer'));
    streams[0]?.end({ code: 'RESOURCE_EXHAUSTED', message: 'enough' });
    expect(await ended).toMatchObject({ code: status.RESOURCE_EXHAUSTED, details: 'enough' });
    await eventually(() => expect(callbacks).toEqual(['hello', 'closed']));
  });

  it.each<[string, Partial<StreamListener>]>([
    ['message', { message: fails }],
    ['finished', { finished: fails }],
  ])('fails with INTERNAL if its %s throws, and the error is logged', async (_, reactions) => {
    const { callbacks, method } = watched(reactions);
    const server = await serving({ methods: { [PATH]: method } });
    const stream = testClient(server.port).stream(PATH);
    const code = codeOf(stream);
    stream.end(Buffer.from('hello'));
    expect(await code).toBe(status.INTERNAL);
    expect(server.lines).toHaveLength(1);
    await eventually(() => expect(callbacks.at(-1)).toBe('closed'));
  });

  it('fails with what its open throws', async () => {
    const open = () => {
      throw new GrpcError('UNAVAILABLE', 'not now');
    };
    const { port } = await serving({ methods: { [PATH]: { kind: 'streaming', open } } });
    const stream = testClient(port).stream(PATH);
    expect(await codeOf(stream)).toBe(status.UNAVAILABLE);
  });
});

const WINDOW_SIZE = 4;
const SMALL_WINDOW = [[WINDOW_SIZE, 100]] as const;

function windowOf(bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return payload;
}

describe('a caller that reads slowly', () => {
  it('makes send return false, and drained is called when it has read', async () => {
    const { callbacks, streams, method } = watched();
    const server = await serving({ methods: { [PATH]: method }, limits: { unsentBytes: 5000 } });
    const raw = await RawConnection.open(server.port, SMALL_WINDOW);
    raw.call(1, PATH);
    await eventually(() => expect(streams).toHaveLength(1));
    const rooms = Array.from({ length: 10 }, () => streams[0]?.send(Buffer.alloc(1000)));
    expect(rooms).toEqual([true, true, true, true, false, false, false, false, false, false]);
    raw.send(frame(FRAMES.window, 0, 1, windowOf(100_000)));
    await eventually(() => expect(callbacks).toEqual(['drained']));
    expect(streams[0]?.send(Buffer.alloc(1000))).toBe(true);
    await eventually(() =>
      expect(raw.of('data', 1).reduce((sum, { payload }) => sum + payload.length, 0)).toBe(11 * 1005),
    );
  });

  it('cannot make the server exceed its memory limit', async () => {
    const { streams, method } = watched();
    const limits = { allUnsentBytes: 100_000 };
    const server = await serving({ methods: { [PATH]: method }, limits });
    const raw = await RawConnection.open(server.port, SMALL_WINDOW);
    raw.call(1, PATH);
    await eventually(() => expect(streams).toHaveLength(1));
    for (let index = 0; index < 200; index++) streams[0]?.send(Buffer.alloc(1000));
    raw.data(1, Buffer.alloc(0), 'end');
    raw.send(frame(FRAMES.window, 0, 1, windowOf(1_000_000)));
    await eventually(() => expect(server.calls).toEqual([{ method: PATH, code: 'RESOURCE_EXHAUSTED' }]));
  });

  it('is disconnected at the max age of its connection if it reads nothing', async () => {
    const { callbacks, streams, method } = watched();
    const limits = { ageMs: 200, ageGraceMs: 100 };
    const server = await serving({ methods: { [PATH]: method }, limits });
    const raw = await RawConnection.open(server.port, SMALL_WINDOW);
    raw.call(1, PATH);
    await eventually(() => expect(streams).toHaveLength(1));
    streams[0]?.send(Buffer.alloc(1000));
    await raw.closed();
    await eventually(() => expect(callbacks.at(-1)).toBe('closed'));
  });
});
