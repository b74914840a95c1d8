import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { bytesField } from '../../../src/extension/wire.ts';
import { eventually } from '../../support/eventually.ts';
import { codeOf, testClient } from '../../support/grpc/client.ts';
import { serving } from '../../support/grpc/serving.ts';

const CHECK = '/grpc.health.v1.Health/Check';
const WATCH = '/grpc.health.v1.Health/Watch';

const requestFor = (service: string) => bytesField(1, Buffer.from(service));

const STATUSES: Readonly<Record<number, string>> = { 1: 'SERVING', 2: 'NOT_SERVING', 3: 'SERVICE_UNKNOWN' };

/** The status is the only field of a response. */
const statusIn = (answer: Uint8Array): string | undefined => STATUSES[answer[1] ?? 0];

describe('Check', () => {
  it.each(['', 'grpc.health.v1.Health'])('returns the status of "%s"', async service => {
    const { port, server } = await serving();
    const client = testClient(port);
    const request = async () =>
      statusIn((await client.call(CHECK, requestFor(service))).message ?? Buffer.alloc(0));
    expect(await request()).toBe('SERVING');
    server.health.set('NOT_SERVING');
    expect(await request()).toBe('NOT_SERVING');
  });

  it('returns NOT_FOUND for other services', async () => {
    const { port } = await serving();
    expect((await testClient(port).call(CHECK, requestFor('other'))).code).toBe(status.NOT_FOUND);
  });

  it('rejects a request that is too large, and continues to serve', async () => {
    const { port, lines } = await serving();
    const client = testClient(port);
    expect((await client.call(CHECK, Buffer.alloc(70_000, Buffer.of(0x12, 0)))).code).toBe(
      status.RESOURCE_EXHAUSTED,
    );
    expect((await client.call(CHECK, requestFor(''))).code).toBe(status.OK);
    expect(lines).toEqual([]);
  });
});

describe('Watch', () => {
  async function watching(service: string) {
    const server = await serving();
    const stream = testClient(server.port).stream(WATCH);
    const statuses: (string | undefined)[] = [];
    stream.on('data', (bytes: Buffer) => statuses.push(statusIn(bytes)));
    const code = codeOf(stream);
    stream.end(Buffer.from(requestFor(service)));
    return { ...server, stream, statuses, code };
  }

  it.each(['', 'grpc.health.v1.Health'])('sends each change of "%s"', async service => {
    const { server, statuses, stream, code } = await watching(service);
    await eventually(() => expect(statuses).toEqual(['SERVING']));
    server.health.set('NOT_SERVING');
    server.health.set('SERVING');
    await eventually(() => expect(statuses).toEqual(['SERVING', 'NOT_SERVING', 'SERVING']));
    stream.cancel();
    expect(await code).toBe(status.CANCELLED);
  });

  it('sends SERVICE_UNKNOWN for other services, and continues', async () => {
    const { server, statuses, stream, code } = await watching('other');
    await eventually(() => expect(statuses).toEqual(['SERVICE_UNKNOWN']));
    server.health.set('NOT_SERVING');
    stream.cancel();
    expect(await code).toBe(status.CANCELLED);
    expect(statuses).toEqual(['SERVICE_UNKNOWN']);
  });
});
