import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as Statuses,
  HealthCheckResponseSchema,
} from '../../../src/extension/proto/grpc/health/v1_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { codeOf, testClient } from '../../support/grpc/client.ts';
import { serving } from '../../support/grpc/serving.ts';

const CHECK = '/grpc.health.v1.Health/Check';
const WATCH = '/grpc.health.v1.Health/Watch';

const requestFor = (service: string) =>
  Buffer.from(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service })));

function statusIn(bytes: Uint8Array): string | undefined {
  const { status: number } = fromBinary(HealthCheckResponseSchema, bytes);
  return Object.entries(Statuses).find(([, value]) => value === number)?.[0];
}

describe('Check', () => {
  it.each(['', 'test.Service'])('tells the status of "%s"', async service => {
    const { port, health } = await serving();
    const client = testClient(port);
    const ask = async () =>
      statusIn((await client.call(CHECK, requestFor(service))).message ?? Buffer.alloc(0));
    expect(await ask()).toBe('SERVING');
    health.set('NOT_SERVING');
    expect(await ask()).toBe('NOT_SERVING');
  });

  it('does not know other services', async () => {
    const { port } = await serving();
    expect((await testClient(port).call(CHECK, requestFor('other'))).code).toBe(status.NOT_FOUND);
  });

  it('refuses what is no request, and nothing is logged', async () => {
    const { port, lines } = await serving();
    for (const request of [Buffer.of(0x0a, 0xff), Buffer.alloc(70_000, Buffer.of(0x12, 0))]) {
      expect((await testClient(port).call(CHECK, request)).code).toBe(status.INVALID_ARGUMENT);
    }
    expect(lines).toEqual([]);
  });
});

describe('Watch', () => {
  async function watching(service: string) {
    const server = await serving();
    const stream = testClient(server.port).stream(WATCH);
    const told: (string | undefined)[] = [];
    stream.on('data', (bytes: Buffer) => told.push(statusIn(bytes)));
    const code = codeOf(stream);
    stream.end(requestFor(service));
    return { ...server, stream, told, code };
  }

  it.each(['', 'test.Service'])('tells each change of "%s" once', async service => {
    const { health, told, stream, code } = await watching(service);
    await eventually(() => expect(told).toEqual(['SERVING']));
    health.set('SERVING');
    health.set('NOT_SERVING');
    health.set('NOT_SERVING');
    health.set('SERVING');
    await eventually(() => expect(told).toEqual(['SERVING', 'NOT_SERVING', 'SERVING']));
    stream.cancel();
    expect(await code).toBe(status.CANCELLED);
  });

  it('says of other services that they are unknown, and goes on', async () => {
    const { health, told, stream, code } = await watching('other');
    await eventually(() => expect(told).toEqual(['SERVICE_UNKNOWN']));
    health.set('NOT_SERVING');
    stream.cancel();
    expect(await code).toBe(status.CANCELLED);
    expect(told).toEqual(['SERVICE_UNKNOWN']);
  });

  it('has one request, not none and not two', async () => {
    const { port } = await serving();
    const none = testClient(port).stream(WATCH);
    const two = testClient(port).stream(WATCH);
    const codes = Promise.all([codeOf(none), codeOf(two)]);
    none.end();
    two.write(requestFor(''));
    two.write(requestFor(''));
    expect(await codes).toEqual([status.INTERNAL, status.INTERNAL]);
  });
});
