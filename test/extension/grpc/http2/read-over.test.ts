import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readOver } from '../../../../src/extension/grpc/http2/read-over.ts';
import { eventually } from '../../../support/eventually.ts';

/** A server that sends back what it gets, and remembers in which memory it came. */
async function reading(prepare: (accepted: Socket) => Socket = accepted => accepted) {
  const memory = Buffer.alloc(65_536);
  const places = new Set<ArrayBufferLike>();
  let bytes = 0;
  const sockets: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, accepted => {
    const socket = readOver(prepare(accepted), memory, piece => {
      places.add(piece.buffer);
      bytes += piece.length;
      if (bytes < 100) socket.write(Buffer.from(piece));
    });
    sockets.push(socket.resume());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  return { memory, places, server, client, sockets, bytes: () => bytes };
}

describe('a socket that is read over and over', () => {
  it('reads all of it into the same memory, answers, and is counted until it closes', async () => {
    const { memory, places, server, client, sockets, bytes } = await reading();
    client.write('hello');
    const [answer] = (await once(client, 'data')) as [Buffer];
    expect(answer.toString()).toBe('hello');
    for (let sent = 0; sent < 100; sent++) client.write(Buffer.alloc(50_000));
    await eventually(() => expect(bytes()).toBe(5_000_005));
    expect([...places]).toEqual([memory.buffer]);
    expect(sockets[0]?.bytesRead).toBe(5_000_005);
    expect(sockets[0]?.remotePort).toBe(client.localPort);
    client.destroy();
    await eventually(() => expect(sockets[0]?.destroyed).toBe(true));
    const closed = once(server, 'close');
    server.close();
    await closed;
  });

  it('waits where it is paused, and goes on', async () => {
    const { client, sockets, bytes } = await reading();
    client.write('hello');
    await once(client, 'data');
    sockets[0]?.pause();
    client.write('more');
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(bytes()).toBe(5);
    sockets[0]?.resume();
    await eventually(() => expect(bytes()).toBe(9));
  });

  it('is read as any other where there is nothing to be read from', async () => {
    const withoutHandle = (accepted: Socket) =>
      new Proxy(accepted, {
        get: (target, name) => {
          if (name === '_handle') return undefined;
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
    const { client, places, memory, bytes } = await reading(withoutHandle);
    client.write('hello');
    await once(client, 'data');
    expect(bytes()).toBe(5);
    expect(places.has(memory.buffer)).toBe(false);
  });
});
