import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { startHttpProxy } from '../../lab/control-api/http-proxy.ts';
import type { HttpProxy, HttpProxyOptions } from '../../lab/control-api/http-proxy.ts';
import { openWire } from '../../src/control/wire.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { failureOf, inTime, startClient } from '../support/control/client.ts';
import type { Client, ClientOptions } from '../support/control/client.ts';
import { AUTHORITY, OTHER_AUTHORITY, SELF_SIGNED } from '../support/kubernetes/wire-certificates.ts';

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

async function proxied(options: HttpProxyOptions = {}): Promise<HttpProxy> {
  const proxy = await startHttpProxy(options);
  closing.push(proxy.close);
  return proxy;
}

const https = { api: { certificate: AUTHORITY.server } } as const;

describe('a control server with a private CA', () => {
  it('is trusted with that CA', async () => {
    const { tokens, credentials, control } = await clientOf({ ...https, endpoint: { ca: AUTHORITY.ca } });
    await tokens.use(credentials);
    expect(await control.devices()).toEqual([]);
  });

  const { server, ca } = AUTHORITY;
  it.each([
    ['no CA', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', server, {}],
    ['another CA', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', server, { ca: OTHER_AUTHORITY.ca }],
    ['the whole chain and no CA', 'SELF_SIGNED_CERT_IN_CHAIN', { ...server, cert: server.cert + ca }, {}],
    ['a self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT', SELF_SIGNED, {}],
  ])('is Unreachable with %s, gets no credentials, and needs spec.controlCA', async (...row) => {
    const [, code, certificate, endpoint] = row;
    const { api, tokens, credentials, clock } = await clientOf({ api: { certificate }, endpoint });
    const error = await inTime(clock, failureOf(tokens.use(credentials)));
    expect(error).toMatchObject({ reason: 'Unreachable' });
    expect(error.message).toBe(
      `${code}: the certificate is of no CA that the operator trusts: set spec.controlCA to the CA of the server`,
    );
    expect(api.requests()).toEqual([]);
  });

  it('is trusted with its own certificate, where that is self-signed', async () => {
    const { tokens, credentials, control } = await clientOf({
      api: { certificate: SELF_SIGNED },
      endpoint: { ca: SELF_SIGNED.cert },
    });
    await tokens.use(credentials);
    expect(await control.devices()).toEqual([]);
  });
});

describe('a control server behind a proxy', () => {
  it.each([
    ['an HTTP proxy, over https', { ...https, proxy: {} }],
    ['an HTTP proxy, over http', { proxy: {} }],
    ['an HTTPS proxy with that CA, over https', { ...https, proxy: { certificate: AUTHORITY.server } }],
    ['an HTTPS proxy with that CA, over http', { proxy: { certificate: AUTHORITY.server } }],
  ])('is reached through a tunnel of %s', async (_, { proxy: options, ...server }) => {
    const proxy = await proxied(options);
    const { api, tokens, credentials, control } = await clientOf({
      ...server,
      endpoint: { ca: AUTHORITY.ca, proxyURL: proxy.url },
    });
    await tokens.use(credentials);
    expect(await control.devices()).toEqual([]);
    expect(new Set(proxy.requests())).toEqual(new Set([`CONNECT ${new URL(api.url).host}`]));
  });

  it('is Unreachable where the proxy demands credentials', async () => {
    const proxy = await proxied({ credentials: { user: 'mesh', password: 'secret' } });
    const { api, tokens, credentials, clock } = await clientOf({ endpoint: { proxyURL: proxy.url } });
    const error = await inTime(clock, failureOf(tokens.use(credentials)));
    expect(error).toMatchObject({ reason: 'Unreachable' });
    expect(error.message).toContain('407');
    expect(api.requests()).toEqual([]);
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
    const server = createServer(socket => {
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
