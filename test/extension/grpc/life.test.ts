import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { startGrpcServer } from '../../../src/extension/grpc/server.ts';
import { DEFAULT_GRPC_LIMITS } from '../../../src/extension/grpc/limits.ts';
import type { Unary } from '../../../src/extension/grpc/method.ts';
import { createActivities } from '../../../src/telemetry/activity.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { codeOf, testClient } from '../../support/grpc/client.ts';
import { FRAMES, frame, message, RawConnection } from '../../support/grpc/raw.ts';
import { echo, echoStream, serving } from '../../support/grpc/serving.ts';

const ECHO = '/test.Service/Echo';
const STREAM = '/test.Service/Stream';
const SLOW = '/test.Service/Slow';

/** A call whose response the test triggers. */
function slow() {
  const answers: (() => void)[] = [];
  const method: Unary = {
    kind: 'unary',
    call: request => new Promise(resolve => answers.push(() => resolve(request))),
  };
  return { answers, method };
}

const methods = { [ECHO]: echo, [STREAM]: echoStream };

const hello = message(Buffer.from('hello'));

const ACK = 1;

const limits = { keepaliveMs: 50, keepaliveTimeoutMs: 100 };

describe('an idle connection', () => {
  it('is pinged, and stays when it answers', async () => {
    const server = await serving({ limits: { ...limits, keepaliveTimeoutMs: 60_000 } });
    const raw = await RawConnection.open(server.port);
    for (let pings = 1; pings <= 3; pings++) {
      await eventually(() => expect(raw.of('ping')).toHaveLength(pings));
      raw.send(frame(FRAMES.ping, ACK, 0, raw.of('ping').at(-1)?.payload));
    }
    expect(raw.socket.destroyed).toBe(false);
  });

  it('is closed when it does not answer', async () => {
    const server = await serving({ limits });
    const raw = await RawConnection.open(server.port);
    await raw.closed();
    expect(raw.of('ping')).toHaveLength(1);
  });

  it('is closed if it never sent anything', async () => {
    const server = await serving({ limits });
    const raw = await RawConnection.silent(server.port);
    await raw.closed();
    expect(raw.frames.every(({ id }) => id === 0)).toBe(true);
  });
});

/** The last stream ID of a GOAWAY that announces another. */
const ANY = 2 ** 31 - 1;

const goaways = (raw: RawConnection) => raw.of('goaway').map(({ payload }) => payload.readUInt32BE(0));

describe('an old connection', () => {
  it('gets GOAWAY, keeps its streams for the grace time, and is then closed', async () => {
    const server = await serving({ methods, limits: { ageMs: 100, ageGraceMs: 1000 } });
    const raw = await RawConnection.open(server.port);
    raw.call(1, STREAM);
    raw.data(1, hello, 'more');
    await eventually(() => expect(goaways(raw)[0]).toBe(ANY));
    const before = raw.of('data', 1).length;
    raw.data(1, hello, 'more');
    await eventually(() => expect(raw.of('data', 1)).toHaveLength(before + 1));
    await raw.closed();
    await eventually(() => expect(server.calls).toEqual([{ method: STREAM, code: 'CANCELLED' }]));
  });

  it('is replaced by its caller without a failed call', async () => {
    const server = await serving({ methods, limits: { ageMs: 100, ageGraceMs: 20_000 } });
    const client = testClient(server.port);
    const codes = new Set<number>();
    const ports = new Set<string>();
    const callOn = async (): Promise<void> => {
      while (ports.size < 4) {
        codes.add((await client.call(ECHO, Buffer.from('a'))).code);
        const [connection] = server.activities.list().get('gRPC server') ?? [];
        if (connection) ports.add(connection.what);
      }
    };
    await Promise.all(Array.from({ length: 20 }, callOn));
    expect([...codes]).toEqual([0]);
  });
});

describe('stopping', () => {
  it('waits for calls, ends streams, and accepts no more', async () => {
    const { answers, method } = slow();
    const server = await serving({ methods: { ...methods, [SLOW]: method } });
    const client = testClient(server.port);
    const stream = client.stream(STREAM);
    const streamCode = codeOf(stream);
    stream.write(Buffer.from('a'));
    const ended: string[] = [];
    const call = client.call(SLOW, Buffer.from('a')).finally(() => ended.push('the call'));
    await eventually(() => expect(answers).toHaveLength(1));
    const stopped = server.server.stop({ graceMs: 10_000 }).then(() => ended.push('the server'));
    expect(await streamCode).toBe(status.UNAVAILABLE);
    expect((await testClient(server.port).call(ECHO, Buffer.from('a'))).code).toBe(status.UNAVAILABLE);
    answers[0]?.();
    expect(await call).toMatchObject({ code: 0 });
    await stopped;
    expect(ended).toEqual(['the call', 'the server']);
    expect(server.activities.list().has('gRPC server')).toBe(false);
  });

  it('ends at the deadline, with calls still running', async () => {
    const { answers, method } = slow();
    const server = await serving({ methods: { [SLOW]: method } });
    const call = testClient(server.port).call(SLOW, Buffer.from('a'));
    await eventually(() => expect(answers).toHaveLength(1));
    await server.server.stop({ graceMs: 50 });
    // Of a connection that ends after it was asked to go away, Node's client makes the one or the other.
    expect([status.UNAVAILABLE, status.INTERNAL]).toContain((await call).code);
    answers[0]?.();
    await eventually(() => expect(server.calls).toEqual([{ method: SLOW, code: 'CANCELLED' }]));
  });

  it('is idempotent', async () => {
    const server = await serving();
    const stop = (graceMs: number) => server.server.stop({ graceMs });
    expect(stop(0)).toBe(stop(1000));
    await stop(0);
    const again = await serving();
    expect(again.port).toBeGreaterThan(0);
  });
});

describe('starting', () => {
  it('throws an error that names the setting if the address is in use', async () => {
    const { port } = await serving();
    const second = startGrpcServer({
      address: { host: '127.0.0.1', port },
      methods: new Map(Object.entries(methods)),
      files: [],
      limits: DEFAULT_GRPC_LIMITS,
      telemetry: {
        log: createLog({ level: 'error' }),
        record: { grpcRequests: () => undefined, grpcErrors: () => undefined, grpcSeconds: () => undefined },
        activities: createActivities(),
      },
      clock: systemClock,
    });
    await expect(second).rejects.toThrow(`GRPC_ADDRESS: cannot listen on 127.0.0.1:${port}: EADDRINUSE`);
  });
});

describe('activities', () => {
  it('list connections and calls', async () => {
    const server = await serving({ methods });
    const stream = testClient(server.port).stream(STREAM);
    const ended = codeOf(stream);
    stream.write(Buffer.from('a'));
    await eventually(() =>
      expect(server.activities.list().get('gRPC server')).toMatchObject([
        { what: expect.stringMatching(/^127\.0\.0\.1:\d+$/) as string, state: 'open' },
        { what: STREAM, state: 'streaming' },
      ]),
    );
    stream.cancel();
    await ended;
    await eventually(() => expect(server.activities.list().get('gRPC server')).toHaveLength(1));
  });
});
