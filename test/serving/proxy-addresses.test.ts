import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { openProxyAddresses } from '../../src/serving/proxy-addresses.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { eventually } from '../support/eventually.ts';

const closed = (client: Socket) =>
  new Promise<boolean>(resolve => client.once('close', hadError => resolve(hadError)).resume());

/** A proxy on 127.0.0.1 that answers each client once it has ended, and its port on ::1. */
async function startProxy(maxConnections = 10) {
  const server = createServer({ allowHalfOpen: true }, client => {
    let received = '';
    client.on('error', () => undefined);
    client.on('data', bytes => (received += String(bytes)));
    client.on('end', () => client.end(`got ${received}`));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy = { host: '127.0.0.1', port };
  const log = createLog({ level: 'error', to: { write: () => undefined } });
  const opened = await openProxyAddresses(['::1'], { proxy, maxConnections }, { log });
  onTestFinished(async () => {
    server.close();
    await opened.close();
  });
  const dial = () => {
    const client = connect({ host: '::1', port });
    client.on('error', () => undefined);
    return client;
  };
  return { server, port, opened, dial, proxy, log };
}

it('clients of the other address of a pod reach the proxy, and may end before it responds', async () => {
  const { dial } = await startProxy();
  const clients = [dial(), dial()];
  clients.forEach((client, index) => client.end(`hello ${index}`));
  expect(await Promise.all(clients.map(text))).toEqual(['got hello 0', 'got hello 1']);
});

it('a client beyond the limit is reset, and others go on', async () => {
  const { dial } = await startProxy(1);
  const first = dial();
  await once(first, 'connect');
  expect(await closed(dial())).toBe(true);
  first.end('hello');
  expect(await text(first)).toBe('got hello');
  await eventually(async () => {
    const third = dial();
    third.end('again');
    expect(await text(third)).toBe('got again');
  });
});

it('a client is reset where the proxy does not listen', async () => {
  const { server, dial } = await startProxy();
  server.close();
  await once(server, 'close');
  expect(await closed(dial())).toBe(true);
});

it('closing ends connections, and listens no more', async () => {
  const { opened, dial } = await startProxy();
  const client = dial();
  await once(client, 'connect');
  const ended = closed(client);
  await opened.close();
  await ended;
  const [error] = (await once(dial().removeAllListeners('error'), 'error')) as [NodeJS.ErrnoException];
  expect(error.code).toBe('ECONNREFUSED');
});

it('an address that is in use is reported with its port', async () => {
  const { port, proxy, log } = await startProxy();
  await expect(openProxyAddresses(['::1'], { proxy, maxConnections: 1 }, { log })).rejects.toThrow(
    `POD_IPS: cannot listen on [::1]:${port}: EADDRINUSE`,
  );
});
