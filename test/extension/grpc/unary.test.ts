import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { GrpcError } from '../../../src/extension/grpc/method.ts';
import type { Unary } from '../../../src/extension/grpc/method.ts';
import { eventually } from '../../support/eventually.ts';
import { testClient } from '../../support/grpc/client.ts';
import { message, RawConnection } from '../../support/grpc/raw.ts';
import { echo, serving } from '../../support/grpc/serving.ts';

const MIB = 1024 * 1024;

const unary = (call: Unary['call']): Unary => ({ kind: 'unary', call });

const methods = {
  '/test.Service/Echo': echo,
  '/test.Service/Later': unary(async request => {
    await new Promise(setImmediate);
    return request;
  }),
  '/test.Service/Parts': unary(request => [request.subarray(0, 3), request.subarray(3)]),
  '/test.Service/Empty': unary(() => []),
  '/test.Service/Refuse': unary(() => {
    throw new GrpcError('NOT_FOUND', '100 % größer\n');
  }),
  '/test.Service/RefuseLater': unary(() => Promise.reject(new GrpcError('UNAVAILABLE', 'not now'))),
  '/test.Service/Throw': unary(() => {
    throw new Error('a secret');
  }),
  '/test.Service/Reject': unary(() => Promise.reject(new Error('a secret'))),
  '/test.Service/Double': unary(request => [request, request]),
};

async function serve(limits: Parameters<typeof serving>[0] = {}) {
  const server = await serving({ methods, ...limits });
  return { server, client: testClient(server.port) };
}

describe('a call', () => {
  it.each(['Echo', 'Later', 'Parts'])('of %s is answered', async name => {
    const { client } = await serve();
    const outcome = await client.call(`/test.Service/${name}`, Buffer.from('hello'));
    expect(outcome).toEqual({ code: 0, details: '', message: Buffer.from('hello') });
  });

  it.each([0, 1, 250, 16_379, 16_384, 32_768, 65_536, 2_000_000, 50 * MIB])(
    'of %i bytes comes back unchanged',
    async size => {
      const { client } = await serve();
      const sent = Buffer.alloc(size, 'mesh-gateway');
      const { code, message: answer } = await client.call('/test.Service/Parts', sent);
      expect([code, answer?.equals(sent)]).toEqual([0, true]);
    },
  );

  it('may have an empty response', async () => {
    const { client } = await serve();
    expect(await client.call('/test.Service/Empty', Buffer.from('a'))).toMatchObject({
      code: 0,
      message: Buffer.alloc(0),
    });
  });

  it('is one of 1,000 at the same time', async () => {
    const { client, server } = await serve();
    const sent = Array.from({ length: 1000 }, (_, index) => Buffer.from(`call ${index}`));
    const outcomes = await Promise.all(sent.map(bytes => client.call('/test.Service/Later', bytes)));
    expect(outcomes.map(outcome => outcome.message?.toString())).toEqual(sent.map(String));
    await eventually(() => expect(server.calls).toHaveLength(1000));
  });

  it.each([
    ['Refuse', status.NOT_FOUND, '100 % größer\n'],
    ['RefuseLater', status.UNAVAILABLE, 'not now'],
    ['Throw', status.INTERNAL, 'internal error: see the log of the server'],
    ['Reject', status.INTERNAL, 'internal error: see the log of the server'],
    ['Absent', status.UNIMPLEMENTED, 'The server does not implement the method /test.Service/Absent'],
  ])('of %s fails with %i', async (name, code, details) => {
    const { client } = await serve();
    expect(await client.call(`/test.Service/${name}`, Buffer.from('a'))).toEqual({ code, details });
  });

  it('with an unexpected error is logged once', async () => {
    const { client, server } = await serve();
    await client.call('/test.Service/Reject', Buffer.from('a'));
    expect(server.lines).toHaveLength(1);
    expect(JSON.parse(server.lines[0] ?? '')).toMatchObject({
      msg: 'unexpected error in a gRPC method',
      method: '/test.Service/Reject',
    });
  });

  it('over the size limit is rejected, in both directions', async () => {
    const { client } = await serve({ limits: { messageBytes: 1000 } });
    expect(await client.call('/test.Service/Echo', Buffer.alloc(1001))).toEqual({
      code: status.RESOURCE_EXHAUSTED,
      details: 'Received message larger than max (1001 vs 1000)',
    });
    expect(await client.call('/test.Service/Double', Buffer.alloc(600))).toEqual({
      code: status.RESOURCE_EXHAUSTED,
      details: 'Sent message larger than max (1205 vs. 1000)',
    });
    expect(await client.call('/test.Service/Echo', Buffer.alloc(50 * MIB))).toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
    });
    expect(await client.call('/test.Service/Echo', Buffer.alloc(1000))).toMatchObject({ code: 0 });
  });
});

describe('a deadline', () => {
  it('ends the call, and a later response is dropped', async () => {
    let answer: (bytes: Buffer) => void = () => undefined;
    const late = unary(() => new Promise(resolve => (answer = resolve)));
    const { client, server } = await serve({ methods: { ...methods, '/test.Service/Late': late } });
    // Connecting does not count against the deadline.
    expect(await client.call('/test.Service/Echo', Buffer.from('a'))).toMatchObject({ code: 0 });
    const { code } = await client.call('/test.Service/Late', Buffer.from('a'), { deadlineMs: 1000 });
    expect(code).toBe(status.DEADLINE_EXCEEDED);
    await eventually(() => expect(server.calls).toHaveLength(2));
    expect(['DEADLINE_EXCEEDED', 'CANCELLED']).toContain(server.calls[1]?.code);
    answer(Buffer.from('late'));
    expect(await client.call('/test.Service/Echo', Buffer.from('b'))).toMatchObject({ code: 0 });
    expect(server.calls[2]?.code).toBe('OK');
  });

  it('is enforced by the server', async () => {
    const never = unary(() => new Promise(() => undefined));
    const server = await serving({ methods: { '/test.Service/Never': never } });
    const raw = await RawConnection.open(server.port);
    raw.call(1, '/test.Service/Never', { 'grpc-timeout': '20m' });
    raw.data(1, message(Buffer.from('a')), 'end');
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(1));
    await eventually(() =>
      expect(server.calls).toEqual([{ method: '/test.Service/Never', code: 'DEADLINE_EXCEEDED' }]),
    );
  });

  it('is not awaited if the caller disconnects', async () => {
    let isAsked = false;
    const never = unary(() => new Promise(() => (isAsked = true)));
    const server = await serving({ methods: { '/test.Service/Never': never } });
    const raw = await RawConnection.open(server.port);
    raw.call(1, '/test.Service/Never');
    raw.data(1, message(Buffer.from('a')), 'end');
    await eventually(() => expect(isAsked).toBe(true));
    raw.socket.destroy();
    await eventually(() =>
      expect(server.calls).toEqual([{ method: '/test.Service/Never', code: 'CANCELLED' }]),
    );
  });
});

describe('a request that is not exactly one message', () => {
  const hello = message(Buffer.from('hello'));
  it.each([
    ['none', Buffer.alloc(0), 'UNIMPLEMENTED'],
    ['two', Buffer.concat([hello, hello]), 'UNIMPLEMENTED'],
    ['half a message', hello.subarray(0, 7), 'UNIMPLEMENTED'],
    ['half a prefix', hello.subarray(0, 3), 'UNIMPLEMENTED'],
    ['garbage', Buffer.alloc(100, 0xee), 'RESOURCE_EXHAUSTED'],
    ['one of 4 GB', Buffer.of(0, 0xff, 0xff, 0xff, 0xff, 1), 'RESOURCE_EXHAUSTED'],
  ])('but %s is refused', async (_, bytes, code) => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    raw.call(1, '/test.Service/Echo');
    raw.data(1, bytes, 'end');
    await eventually(() => expect(server.calls).toEqual([{ method: '/test.Service/Echo', code }]));
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(1));
    expect(server.lines).toEqual([]);
  });
});

describe('a compressed request', () => {
  it('is rejected before it is decompressed', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    raw.call(1, '/test.Service/Echo', { 'grpc-encoding': 'gzip' });
    raw.data(1, message(gzipSync(Buffer.alloc(5 * MIB)), 1), 'end');
    await eventually(() =>
      expect(server.calls).toEqual([{ method: '/test.Service/Echo', code: 'UNIMPLEMENTED' }]),
    );
  });
});

describe('each call of a method that is served', () => {
  it('is recorded by its method and code', async () => {
    const { client, server } = await serve();
    for (const name of ['Echo', 'Refuse', 'Absent'])
      await client.call(`/test.Service/${name}`, Buffer.from('a'));
    const refused = { method: '/test.Service/Refuse', code: 'NOT_FOUND' };
    await eventually(() =>
      expect(server.calls).toEqual([{ method: '/test.Service/Echo', code: 'OK' }, refused]),
    );
    expect(server.errors).toEqual([refused]);
  });
});
