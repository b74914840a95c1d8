import { fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { testClient } from '../../support/grpc/client.ts';
import { callHeaders, FRAMES, frame, header, message, RawConnection } from '../../support/grpc/raw.ts';
import { echo, echoStream, serving } from '../../support/grpc/serving.ts';
import type { Serving } from '../../support/grpc/serving.ts';
import { programPath } from '../../support/programs/programs.ts';

const ECHO = '/test.Service/Echo';
const STREAM = '/test.Service/Stream';
const methods = { [ECHO]: echo, [STREAM]: echoStream };

const SMALL_POOL = 'test/support/grpc/small-pool.ts';
const MIB = 1024 * 1024;
const END_HEADERS = 4;
const PRIORITY = 2;

const word = (number: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number);
  return bytes;
};

/** The server answers others, and has released closed connections. */
async function expectUnharmed(server: Serving, raw: RawConnection): Promise<void> {
  raw.socket.destroy();
  const calls = () =>
    server.activities
      .list()
      .get('gRPC server')
      ?.filter(({ state }) => state !== 'open');
  await eventually(() => expect(calls()).toEqual([]));
  const { code } = await testClient(server.port).call(ECHO, Buffer.from('still there'));
  expect(code).toBe(0);
  expect(server.lines).toEqual([]);
}

describe('other callers are served during a flood', () => {
  const call = frame(FRAMES.headers, END_HEADERS, 1, callHeaders(STREAM));
  const many = (count: number, bytes: (at: number) => Buffer) =>
    Buffer.concat(Array.from({ length: count }, (_, at) => bytes(at)));
  const headersOf = (id: number) => frame(FRAMES.headers, END_HEADERS, id, callHeaders(STREAM));

  it.each<[string, Buffer]>([
    ['pings', many(11_000, () => frame(FRAMES.ping, 0, 0, Buffer.alloc(8)))],
    ['ping ACKs', many(11_000, () => frame(FRAMES.ping, 1, 0, Buffer.alloc(8)))],
    ['settings', many(200, at => frame(FRAMES.settings, 0, 0, Buffer.concat([Buffer.of(0, 4), word(at)])))],
    ['settings ACKs', many(11_000, () => frame(FRAMES.settings, 1, 0))],
    ['empty data frames', many(11_000, () => frame(FRAMES.data, 0, 1))],
    ['window updates', many(11_000, () => frame(FRAMES.window, 0, 1, word(1)))],
    ['priorities', many(11_000, at => frame(PRIORITY, 0, 2 * at + 3, Buffer.alloc(5)))],
    ['frames of an unknown type', many(11_000, () => frame(0x42, 0, 0))],
    ['resets of a closed stream', many(11_000, () => frame(FRAMES.reset, 0, 1, word(8)))],
    [
      'headers that do not end',
      Buffer.concat([frame(FRAMES.headers, 0, 3), many(40, () => frame(FRAMES.more, 0, 3))]),
    ],
    [
      'calls that are reset at once',
      many(17_000, at => Buffer.concat([headersOf(2 * at + 3), frame(FRAMES.reset, 0, 2 * at + 3, word(8))])),
    ],
    [
      'calls that it has the server reset',
      many(17_000, at =>
        Buffer.concat([headersOf(2 * at + 3), frame(FRAMES.window, 0, 2 * at + 3, word(0))]),
      ),
    ],
  ])('%s', async (_, bytes) => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    const before = process.memoryUsage().rss;
    raw.send(call);
    for (let round = 0; round < 10; round++) raw.send(bytes);
    const { code } = await testClient(server.port).call(ECHO, Buffer.from('meanwhile'));
    expect(code).toBe(0);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * MIB);
    await expectUnharmed(server, raw);
  });
});

describe('headers that decompress to many bytes', () => {
  it('are rejected', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port);
    const large = header('x-large', 'x'.repeat(3900));
    large[0] = 0x40;
    raw.send(frame(FRAMES.headers, END_HEADERS, 1, Buffer.concat([callHeaders(ECHO), large])));
    const before = process.memoryUsage().rss;
    for (let id = 3; id < 1003; id += 2)
      raw.send(
        frame(
          FRAMES.headers,
          END_HEADERS,
          id,
          Buffer.concat([callHeaders(ECHO), Buffer.alloc(16_000, 0xbe)]),
        ),
      );
    await eventually(() => expect(raw.of('reset').length + raw.of('goaway').length).toBeGreaterThan(0));
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MIB);
    await expectUnharmed(server, raw);
  });
});

describe('a caller that does not read', () => {
  it('cannot make the server exceed its memory limit by sending requests', async () => {
    const child = fork(programPath(SMALL_POOL), { execArgv: ['--expose-gc'] });
    onTestFinished(() => void child.kill());
    const [port] = (await once(child, 'message')) as [number];
    const raw = await RawConnection.open(port, [[4, 2 ** 31 - 1]]);
    raw.socket.pause();
    const call = Buffer.alloc(500_000);
    for (let id = 1; id < 600; id += 2) {
      raw.call(id, ECHO);
      const bytes = message(call);
      for (let at = 0; at < bytes.length; at += 16_384)
        raw.data(id, bytes.subarray(at, at + 16_384), at + 16_384 < bytes.length ? 'more' : 'end');
      await new Promise(setImmediate);
    }
    child.send('held');
    const [held] = (await once(child, 'message')) as [number];
    expect(held).toBeLessThan(120 * MIB);
    const { code } = await testClient(port).call(ECHO, Buffer.from('still there'));
    expect(code).toBe(0);
    raw.socket.destroy();
  });

  it('may have the smallest flow-control windows, and gets everything in the end', async () => {
    const server = await serving({ methods });
    const raw = await RawConnection.open(server.port, [[4, 0]]);
    raw.call(1, ECHO);
    raw.data(1, message(Buffer.from('hello')), 'end');
    for (let sent = 0; sent <= 10; sent++) raw.send(frame(FRAMES.window, 0, 1, word(1)));
    await eventually(() => expect(raw.of('headers', 1)).toHaveLength(2));
    expect(Buffer.concat(raw.of('data', 1).map(({ payload }) => payload))).toEqual(
      message(Buffer.from('hello')),
    );
    await expectUnharmed(server, raw);
  });
});
