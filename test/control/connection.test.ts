import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { openWire } from '../../src/control/wire.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { failureOf, inTime, startClient } from '../support/control/client.ts';
import type { Client, ClientOptions } from '../support/control/client.ts';
import { AUTHORITY, OTHER_AUTHORITY } from '../support/kubernetes/wire-certificates.ts';

/** Starts a response of 100 bytes. */
const HALF = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function clientOf(options: ClientOptions): Promise<Client> {
  const client = await startClient(options);
  closing.push(client.close);
  return client;
}

/** An HTTP proxy that tunnels with CONNECT, and the targets that it was asked for. */
async function startProxy() {
  const targets: string[] = [];
  const proxy = createServer();
  proxy.on('connect', (request, client) => {
    targets.push(request.url ?? '');
    const [host = '', port = ''] = (request.url ?? '').split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client).pipe(upstream);
    });
    upstream.on('error', () => client.destroy());
    client.on('error', () => upstream.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  closing.push(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  return { targets, url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
}

const https = { api: { certificate: AUTHORITY.server } } as const;

describe('a control server with a private CA', () => {
  it('is trusted with that CA', async () => {
    const { tokens, credentials, control } = await clientOf({ ...https, endpoint: { ca: AUTHORITY.ca } });
    await tokens.use(credentials);
    expect(await control.devices()).toEqual([]);
  });

  it.each([
    ['no CA', {}],
    ['another CA', { ca: OTHER_AUTHORITY.ca }],
  ])('is Unreachable with %s, and gets no credentials', async (_, endpoint) => {
    const { api, tokens, credentials, clock } = await clientOf({ ...https, endpoint });
    const error = await inTime(clock, failureOf(tokens.use(credentials)));
    expect(error).toMatchObject({ reason: 'Unreachable' });
    expect(error.message).toMatch(/certificate|CERT|issuer/i);
    expect(api.requests()).toEqual([]);
  });
});

describe('a control server behind an HTTP proxy', () => {
  it.each([
    ['https', { ...https, endpoint: { ca: AUTHORITY.ca } }],
    ['http', { endpoint: {} }],
  ])('is reached through a tunnel, over %s', async (_, { endpoint, ...options }) => {
    const proxy = await startProxy();
    const { api, tokens, credentials, control } = await clientOf({
      ...options,
      endpoint: { ...endpoint, proxyURL: proxy.url },
    });
    await tokens.use(credentials);
    expect(await control.devices()).toEqual([]);
    expect(new Set(proxy.targets)).toEqual(new Set([new URL(api.url).host]));
  });

  it('is Unreachable while the proxy is', async () => {
    const { api, tokens, credentials, clock } = await clientOf({
      endpoint: { proxyURL: 'http://127.0.0.1:9' },
    });
    const error = await inTime(clock, failureOf(tokens.use(credentials)));
    expect(error).toMatchObject({ reason: 'Unreachable' });
    expect(api.requests()).toEqual([]);
  });
});

describe('a connection that breaks', () => {
  it.each([
    ['ended before the response', (socket: Socket) => void socket.end()],
    ['reset before the response', (socket: Socket) => void socket.resetAndDestroy()],
    ['ended within the response', (socket: Socket) => void socket.end(HALF)],
  ])('has one message, so that status stays as it is: %s', async (_, end) => {
    const server = createTcpServer(socket => {
      socket.on('error', () => undefined);
      socket.once('data', () => end(socket));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const wire = openWire({ url, clock: systemClock, now: () => new Date(), userAgent: 'tests' });
    closing.push(wire.close);
    const error = await failureOf(wire.send({ route: 'probe', method: 'GET', path: '/api/v2/tailnet' }));
    expect(error).toMatchObject({
      reason: 'Unreachable',
      message: 'the connection was closed before the end of the response',
    });
  });
});
