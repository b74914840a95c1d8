import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { Serving } from '../../support/grpc/serving.ts';
import { testClient } from '../../support/grpc/client.ts';
import { callHeaders, FRAMES, frame, header, message, RawConnection } from '../../support/grpc/raw.ts';
import { echo, echoStream, serving } from '../../support/grpc/serving.ts';

const ECHO = '/test.Service/Echo';
const STREAM = '/test.Service/Stream';
const methods = { [ECHO]: echo, [STREAM]: echoStream };

const MIB = 1024 * 1024;
/** Idle connections are closed soon. */
const QUICK = { keepaliveMs: 100, keepaliveTimeoutMs: 100 };
/** Node 20 stops reading a connection with many resets before the server counts them: only keepalive closes it. */
const MANY_RESETS = process.version.startsWith('v20.') ? { keepaliveMs: 4000, keepaliveTimeoutMs: 1000 } : {};
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

const unhandled: unknown[] = [];
const note = (error: unknown) => void unhandled.push(error);

beforeEach(() => {
  unhandled.length = 0;
  process.on('unhandledRejection', note);
});

afterEach(() => {
  process.off('unhandledRejection', note);
});

/** The server answers others, has logged nothing, and no rejection was unhandled. */
async function expectUnharmed(server: Serving): Promise<void> {
  const check = await testClient(server.port).call('/grpc.health.v1.Health/Check', Buffer.alloc(0));
  expect(check).toEqual({ code: 0, details: '', message: Buffer.of(8, 1) });
  expect(server.lines).toEqual([]);
  expect(unhandled).toEqual([]);
}

/** Sends bytes repeatedly, with backpressure, until the other side closes or all are sent. */
async function flood(raw: RawConnection, bytes: Uint8Array, times: number): Promise<void> {
  for (let sent = 0; sent < times && !raw.socket.destroyed; sent++) {
    if (!raw.socket.write(bytes)) {
      await Promise.race([new Promise(resolve => raw.socket.once('drain', resolve)), raw.closed()]);
    }
  }
}

describe('a connection that does not use HTTP/2', () => {
  it.each([
    ['garbage', Buffer.from(Array.from({ length: 4096 }, (_, index) => (index * 7919) % 256))],
    ['HTTP/1.1', Buffer.from('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')],
    ['an upgrade', Buffer.from('GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n')],
    ['TLS', Buffer.from('16030100f5010000f10303', 'hex')],
    ['a preface and garbage', Buffer.concat([Buffer.from(PREFACE), Buffer.alloc(4096, 0xee)])],
  ])('but %s is closed', async (_, bytes) => {
    const server = await serving({ methods });
    const raw = await RawConnection.silent(server.port);
    raw.send(bytes);
    await raw.closed();
    await expectUnharmed(server);
  });
});

describe('a connection that breaks the rules of HTTP/2', () => {
  it.each([
    ['a frame that is too large', Buffer.concat([Buffer.of(0xff, 0xff, 0xff, 0, 0), Buffer.alloc(4)])],
    ['data of an unknown stream', frame(FRAMES.data, 0, 7)],
    ['invalid headers', frame(FRAMES.headers, 5, 1, Buffer.of(0xff))],
  ])('by %s is closed when its keepalive times out, since the library stops reading it', async (_, bytes) => {
    const server = await serving({ methods, limits: QUICK });
    const raw = await RawConnection.open(server.port);
    raw.send(bytes);
    await raw.closed();
    await expectUnharmed(server);
  });
});

describe('a request that is not a gRPC call', () => {
  it('because of its content type gets an HTTP error', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    raw.call(1, ECHO, { 'content-type': 'application/json' });
    raw.data(1, message(Buffer.from('a')), 'end');
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(1));
    expect(raw.of('headers', 1)[0]?.payload.includes(Buffer.from('415'))).toBe(true);
    await expectUnharmed(server);
  });

  it('because of an invalid deadline is rejected', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    raw.call(1, ECHO, { 'grpc-timeout': 'soon' });
    raw.data(1, message(Buffer.from('a')), 'end');
    await eventually(() => expect(server.calls).toEqual([{ method: ECHO, code: 'INTERNAL' }]));
    await expectUnharmed(server);
  });

  it('because its headers are too large is rejected', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    await eventually(() => expect(raw.of('settings')).toHaveLength(2));
    const large = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`x-${at}`, 'x'.repeat(20)]));
    raw.call(1, ECHO, large);
    raw.data(1, message(Buffer.from('a')), 'end');
    await eventually(() => expect(raw.of('reset', 1)).toHaveLength(1));
    expect(server.calls).toEqual([]);
    await expectUnharmed(server);
  });
});

describe('a flood', () => {
  /** The memory that a flood costs this process, its sender included. */
  async function growth(act: () => Promise<void>): Promise<number> {
    const before = process.memoryUsage().rss;
    await act();
    return process.memoryUsage().rss - before;
  }

  const opened = frame(FRAMES.settings, 0, 0);
  it.each<[string, Buffer, number]>([
    ['pings', frame(FRAMES.ping, 0, 0, Buffer.alloc(8)), 500_000],
    ['settings', frame(FRAMES.settings, 0, 0, Buffer.of(0, 4, 0, 1, 0, 0)), 500_000],
    ['empty data', frame(FRAMES.data, 0, 1), 500_000],
    ['unknown frames', frame(0x42, 0, 0, Buffer.alloc(1000)), 50_000],
    ['window updates', frame(FRAMES.window, 0, 0, Buffer.of(0, 0, 0, 1)), 500_000],
  ])('of %s does not grow memory', async (_, bytes, times) => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    raw.call(1, STREAM);
    raw.send(opened);
    const batch = Buffer.concat(Array.from({ length: 500 }, () => bytes));
    raw.socket.pause();
    const grown = await growth(() => flood(raw, batch, Math.min(times / 500, (40 * MIB) / batch.length)));
    expect(grown).toBeLessThan(100 * MIB);
    await expectUnharmed(server);
  });

  it('of headers that never end is closed', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    raw.send(frame(FRAMES.headers, 0, 1, callHeaders(ECHO)));
    await flood(raw, frame(FRAMES.more, 0, 1, header('x', 'y'.repeat(100))), 10_000);
    await raw.closed();
    expect(server.calls).toEqual([]);
    await expectUnharmed(server);
  });

  it('of calls that are reset at once is closed', async () => {
    const server = await serving({ methods, limits: MANY_RESETS });
    const raw = await RawConnection.open(server.port);
    const reset = Buffer.of(0, 0, 0, 8);
    for (let id = 1; id < 40_000; id += 2) {
      raw.send(frame(FRAMES.headers, 4, id, callHeaders(STREAM)), frame(FRAMES.reset, 0, id, reset));
      if (id % 1000 === 1) await new Promise(setImmediate);
    }
    await raw.closed();
    await eventually(() => expect(server.activities.list().get('gRPC server')).toEqual([]));
    await expectUnharmed(server);
  });

  it('of resets, as of an Envoy that loses its clusters, closes its connection at once', async () => {
    const server = await serving({ methods, limits: MANY_RESETS });
    const raw = await RawConnection.open(server.port);
    for (let id = 1; id < 8001; id += 2) raw.call(id, STREAM);
    await eventually(() => expect(server.activities.list().get('gRPC server')).toHaveLength(4001));
    for (let id = 1; id < 4001; id += 2) raw.send(frame(FRAMES.reset, 0, id, Buffer.of(0, 0, 0, 8)));
    await raw.closed();
    await eventually(() => expect(server.calls).toHaveLength(4000));
    await expectUnharmed(server);
  });

  it('of streams is accepted up to the limit of all connections', async () => {
    const server = await serving({ methods, limits: { streamsOfConnection: 500, streams: 800 } });
    const [first, second] = [await RawConnection.open(server.port), await RawConnection.open(server.port)];
    for (const raw of [first, second]) {
      for (let id = 1; id < 1000; id += 2) raw.call(id, STREAM);
    }
    await eventually(() => expect(first.of('headers').length + second.of('headers').length).toBe(200));
    const streams = server.activities.list().get('gRPC server') ?? [];
    expect(streams.filter(({ state }) => state === 'streaming')).toHaveLength(800);
    for (const raw of [first, second]) raw.socket.destroy();
    await eventually(() => expect(server.activities.list().get('gRPC server')).toEqual([]));
    await expectUnharmed(server);
  });

  it('of streams, as of many Envoys, has no unary call refused', async () => {
    const server = await serving({ methods, limits: { streams: 20 } });
    const raw = await RawConnection.open(server.port);
    for (let id = 1; id < 80; id += 2) raw.call(id, STREAM);
    await eventually(() => expect(raw.of('headers')).toHaveLength(20));
    await expectUnharmed(server);
    const echo = await testClient(server.port).call(ECHO, Buffer.from('a'));
    expect(echo.code).toBe(0);
  });

  it('of streams is accepted up to the limit of a connection', async () => {
    const server = await serving({ methods, limits: { streamsOfConnection: 500 } });
    const raw = await RawConnection.open(server.port);
    await eventually(() => expect(raw.of('settings')).toHaveLength(2));
    for (let id = 1; id < 1000; id += 2) raw.call(id, STREAM);
    await eventually(() => expect(server.activities.list().get('gRPC server')).toHaveLength(501));
    await eventually(() => expect(server.activities.list().get('gRPC server')).toHaveLength(501));
    raw.socket.destroy();
    await eventually(() => expect(server.calls).toHaveLength(500));
    await expectUnharmed(server);
  });

  it('of 8,192 streams on one connection is within the limits, as an Envoy may need them', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    const hello = message(Buffer.from('hello'));
    for (let id = 1; id < 16_384; id += 2) {
      raw.send(frame(FRAMES.headers, 4, id, callHeaders(STREAM)), frame(FRAMES.data, 0, id, hello));
    }
    await eventually(() => expect(raw.of('data')).toHaveLength(8192));
    expect(raw.of('reset')).toEqual([]);
    await expectUnharmed(server);
  });
});

describe('requests that never end', () => {
  it('are reset, and their memory is released', async () => {
    const server = await serving({ methods, limits: { requestMs: 500 } });
    const raw = await RawConnection.open(server.port);
    const half = message(Buffer.alloc(200_000)).subarray(0, 1000);
    for (const id of [1, 3, 5]) raw.call(id, id === 5 ? STREAM : ECHO);
    raw.data(1, half, 'more');
    raw.data(3, half.subarray(0, 3), 'more');
    raw.data(5, half, 'more');
    const reset = { method: ECHO, code: 'CANCELLED' };
    await eventually(() => expect(server.calls).toEqual([reset, reset, { ...reset, method: STREAM }]));
    await eventually(() => expect(raw.of('reset')).toHaveLength(3));
    await expectUnharmed(server);
  });

  it('stay within the memory limit, with any announced length, and do not block small requests', async () => {
    const server = await serving({ methods, limits: { smallBytes: 65_536, pooledBytes: 8 * MIB } });
    const raw = await RawConnection.open(server.port);
    const start = message(Buffer.alloc(3 * MIB)).subarray(0, 16_384);
    const before = process.memoryUsage().arrayBuffers;
    for (let id = 1; id < 100; id += 2) raw.call(id, ECHO);
    for (let round = 0; round < 10; round++) {
      for (let id = 1; id < 100; id += 2) raw.data(id, start, 'more');
    }
    expect((await testClient(server.port).call(ECHO, Buffer.from('small'))).code).toBe(0);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50 * MIB);
    await expectUnharmed(server);
  });

  it('are queued if they are large, and each is answered', async () => {
    const server = await serving({ methods, limits: { smallBytes: 65_536, pooledBytes: MIB } });
    const sent = Array.from({ length: 20 }, (_, at) => Buffer.alloc(2 * MIB, at));
    const client = testClient(server.port);
    const outcomes = await Promise.all(sent.map(bytes => client.call(ECHO, bytes)));
    expect(outcomes.map(({ message: answer }, at) => answer?.equals(sent[at] ?? answer))).toEqual(
      sent.map(() => true),
    );
    await expectUnharmed(server);
  });
});
